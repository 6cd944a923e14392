# tools/build.sh: sourced by tools/run and tools/test. Sets $root and $jobs, defines `build`.
# The caller's folder stays current, so that relative names among its arguments keep their meaning.
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
jobs=${KVO_JOBS:-$(nproc 2>/dev/null || echo 2)}

# An initial value for CMAKE_CXX_COMPILER_LAUNCHER; an existing build folder keeps its own.
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# Passes everything to the log file $1; on a terminal, shows ninja's progress on one line.
watch_build() {
  if [[ -t 2 ]]; then
    awk -v log_file="$1" '
      { print >> log_file; fflush(log_file) }
      /^\[[0-9]+\/[0-9]+\]/ { printf "\r\033[K%.78s", $0 > "/dev/stderr"; shown = 1 }
      END { if (shown) printf "\r\033[K" > "/dev/stderr" }'
  else
    cat >>"$1"
  fi
}

# configure PRESET LOG: makes the build folder unless it is there, belongs to this very tree and is
# younger than the presets; ninja sees to the rest.
configure() {
  local folder=$root/build/$1 fresh=()
  if [[ -f $folder/CMakeCache.txt ]]; then
    if ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
      fresh=(--fresh)
    elif [[ $folder/build.ninja -nt $root/CMakePresets.json ]]; then
      return 0
    fi
  fi
  cmake "${fresh[@]}" --preset "$1" -S "$root" 2>&1 | watch_build "$2"
}

# build PRESET [TARGET]: silent when all is well; else shows the log and returns 1.
# Without TARGET: what the build preset names.
build() {
  local preset=$1 log=$root/build/$1.log targets=()
  if [[ -n ${2:-} ]]; then targets=(--target "$2"); fi
  mkdir -p "$root/build"
  : >"$log"
  if ! configure "$preset" "$log" ||
    ! (cd "$root" && cmake --build --preset "$preset" -j "$jobs" "${targets[@]}" 2>&1) |
    watch_build "$log"; then
    cat "$log" >&2
    printf 'The build failed; the lines above are also in %s\n' "$log" >&2
    return 1
  fi
}
