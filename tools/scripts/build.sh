# tools/scripts/build.sh: sourced by tools/run and tools/test. Sets $root and $jobs, defines `build`.
# The caller's folder stays current, so that relative names among its arguments keep their meaning.
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
jobs=${KVO_JOBS:-$(nproc 2>/dev/null || echo 2)}

# An initial value for CMAKE_CXX_COMPILER_LAUNCHER; an existing build folder keeps its own.
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

source "$root/tools/scripts/progress.sh"

# The preset that builds the command: "release" in a folder that has tests, as tools/test makes it, else "command".
command_preset() {
  if grep -qsx 'KVO_TESTS:BOOL=ON' "$root/build/release/CMakeCache.txt"; then
    echo release
  else
    echo command
  fi
}

# configure PRESET FOLDER LOG: makes the build folder unless it is there, belongs to this very tree and is
# younger than the presets and the CUDA compiler; ninja sees to the rest. What preset "command" made stays
# for preset "release".
configure() {
  local folder=$2 fresh=()
  if [[ -f $folder/CMakeCache.txt ]]; then
    if ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
      fresh=(--fresh)
    elif [[ $1 == release && $(command_preset) == command ]]; then
      :
    elif [[ $1 != command && $root/build/cuda-toolchain/complete -nt $folder/build.ninja ]]; then
      fresh=(--fresh)
    elif [[ $folder/build.ninja -nt $root/CMakePresets.json ]]; then
      return 0
    fi
  fi
  progress "configure $1"
  cmake "${fresh[@]}" --preset "$1" -S "$root" 2>&1 | follow "configure $1" "$3"
}

# build PRESET [TARGETS]: shows how far it is; when it fails, shows the log and returns 1.
# TARGETS: one word or several; without: what the build preset names.
build() {
  local preset=$1 folder=$root/build/${1/#command/release} targets=()
  local log=$folder.log
  if [[ -n ${2:-} ]]; then read -ra targets <<<"--target $2"; fi
  mkdir -p "$root/build"
  : >"$log"
  if ! configure "$preset" "$folder" "$log" ||
    ! { progress "build $preset" &&
      (cd "$root" && cmake --build --preset "$preset" -j "$jobs" "${targets[@]}" 2>&1) |
      follow "build $preset" "$log"; }; then
    progress_done
    cat "$log" >&2
    printf 'The build failed; the lines above are also in %s\n' "$log" >&2
    return 1
  fi
  progress_done
}
