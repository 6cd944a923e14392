#!/usr/bin/env bash
# package_test.sh CASE FOLDER: one test of the installed package, and of examples/own_contract built
# against it; CTest runs each CASE, with what it needs of the build in KVO_*. FOLDER keeps what one
# case leaves for the next. Ends with status 1 and says why when something is not as it should be.
set -uo pipefail
examples=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
case=$1
folder=$2
out=$2/$1.out
prefix=$folder/prefix
program=$folder/own_contract/own_contract
mutant=ring.tokens@mutant:never_refuses

fail() {
  printf '%s\n' "$*" "output was:" "$(cat "$out")" >&2
  exit 1
}

# gives STATUS COMMAND..: runs it in the case's own folder; what it says is in $out.
gives() {
  local want=$1 status=0
  shift
  mkdir -p "$folder/$case" && cd "$folder/$case" || exit 1
  "$@" >"$out" 2>&1 || status=$?
  [[ $status == "$want" ]] || fail "status $status, not $want: $*"
}

# says TEXT..: each stands in what the last command said.
says() {
  for text in "$@"; do
    grep -qF -- "$text" "$out" || fail "nothing says: $text"
  done
}

case $case in
  install)
    rm -rf "${folder:?}"
    gives 0 "$KVO_CMAKE" --install "$KVO_BUILD" --prefix "$prefix"
    for file in bin/kvoracle share/kvoracle/kvoracle.schema.json share/man/man1/kvoracle.1 \
      share/bash-completion/completions/kvoracle share/doc/kvoracle/docs/rules/layered.md; do
      [[ -s $prefix/$file ]] || fail "not installed: $file"
    done
    (($(du -s -B 1000000 "$prefix" | cut -f 1) <= 100)) || fail "the package has $(du -sh "$prefix")"
    ;;
  target)
    # ./tools/run builds the target `installed`, and README.md installs after it.
    [[ $KVO_GENERATOR == Ninja ]] || { echo "skipped: not Ninja"; exit 0; }
    ninja=$(sed -n 's/^CMAKE_MAKE_PROGRAM:[^=]*=//p' "$KVO_BUILD/CMakeCache.txt")
    gives 0 "$ninja" -C "$KVO_BUILD" -t commands installed
    mapfile -t files < <(find "$KVO_BUILD" -name cmake_install.cmake -exec grep -ohE "\"$KVO_BUILD/[^\"]+" {} + |
      sed "s|^\"$KVO_BUILD/||" | grep -E '[.](a|o|1|bash)$|kvoracle$' | sort -u)
    ((${#files[@]} > 10)) || fail "nothing is installed"
    for file in "${files[@]}"; do
      grep -qE "[ /]$file( |$)" "$out" || fail "the target does not make $file"
    done
    ;;
  readme)
    # The program of README.md, with the cache of own_cache.cpp.
    mkdir -p "$folder/readme/mine"
    {
      printf 'cmake_minimum_required(VERSION 3.25)\nproject(mine CXX)\n'
      sed -n '/^```cmake/,/^```$/{/^```/d;p}' "$examples/../README.md"
    } >"$folder/readme/mine/CMakeLists.txt"
    # The tree's own sources have its headers without the name of the package.
    sed -E 's|^#include "([a-z]+/.*)"|#include <kvoracle/\1>|' "$examples/own_cache.cpp" >"$folder/readme/mine/mine.cpp"
    gives 0 "$KVO_CMAKE" -S "$folder/readme/mine" -B "$folder/readme/build" -G "$KVO_GENERATOR" \
      -DCMAKE_CXX_COMPILER="$KVO_CXX" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Debug
    gives 0 "$KVO_CMAKE" --build "$folder/readme/build"
    gives 1 "$folder/readme/build/mine" check layered.vector@own --cases 20
    says 'FAILED layered.vector@own' 'repeat with: mine conform '
    ;;
  headers)
    # All in one source, so that nothing but the prefix is there to include; the preset lint
    # compiles each by itself.
    mkdir -p "$folder/headers"
    (cd "$prefix/include/kvoracle" && find . -name '*.hpp' | sort | sed 's/^\.\/\(.*\)/#include "\1"/') \
      >"$folder/headers/all.cpp"
    [[ $(wc -l <"$folder/headers/all.cpp") -gt 90 ]] || fail "headers are missing"
    gives 0 "$KVO_CXX" -std=c++20 -fsyntax-only '-DKVO_VERSION=""' \
      -I "$prefix/include/kvoracle" "$folder/headers/all.cpp"
    ;;
  build)
    gives 0 "$KVO_CMAKE" -S "$examples/own_contract" -B "$folder/own_contract" \
      -G "$KVO_GENERATOR" -DCMAKE_CXX_COMPILER="$KVO_CXX" -DCMAKE_PREFIX_PATH="$prefix" \
      -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
    gives 0 "$KVO_CMAKE" --build "$folder/own_contract"
    ;;
  list)
    gives 0 "$program" list --contract ring
    says 'push(tokens, when_full)' 'window()' 'clear()' 'capacity' 'RING-3' long_push_empties
    gives 0 "$program" list
    says 'ring ' 'layered ' 'own_contract list CONTRACT'
    gives 0 "$program" list subjects
    says ring.tokens@optimized layered.vector@reference
    gives 0 "$program" completion bash
    says 'complete -o default -F _own_contract own_contract'
    gives 0 "$program" completion bash --line="own_contract check ring.tokens@o"
    says ring.tokens@optimized
    ;;
  check)
    gives 0 "$program" check ring --cases 300
    says ring.tokens@optimized ' 0 mismatches' 'all 4 states'
    gives 0 "$program" check ring --cases 300 --profile documented
    ;;
  mutants)
    gives 0 "$program" mutants --contract ring
    says "$mutant" '2 of 2 caught in '
    ;;
  repeat)
    gives 1 "$program" check "$mutant" --cases 50
    command=$(sed -n 's/.*repeat with: own_contract //p' "$out" | head -n 1)
    [[ $command == conform* ]] || fail "no command that repeats it"
    # shellcheck disable=SC2086
    gives 1 "$program" $command
    says "FAILED $mutant" '1 mismatch'
    ;;
  shrink)
    log=$folder/shrink/log.jsonl
    mkdir -p "$folder/shrink"
    push='{"op":"push","args":{"tokens":{"shape":[2],"data":[1,2]},"when_full"'
    {
      echo '{"kvlog":1,"contract":"ring","cache":"tokens","config":{"capacity":3},"case":"long"}'
      for _ in {1..20}; do printf '%s:"evict"}}\n{"op":"window","args":{}}\n' "$push"; done
      printf '%s:"refuse"}}\n{"op":"window","args":{}}\n' "$push"
    } >"$log"
    gives 1 "$program" shrink "$log" --subject "$mutant" -o "$folder/shrink/small.jsonl"
    [[ $(grep -c '"op"' "$folder/shrink/small.jsonl") -le 3 ]] || fail "more than 3 operations"
    gives 1 "$program" conform "$folder/shrink/small.jsonl" --subject "$mutant"
    gives 0 "$program" conform "$folder/shrink/small.jsonl"
    ;;
  conform)
    gives 0 "$program" conform "$examples/own_contract/long_push.jsonl"
    says ' 0 mismatches'
    gives 0 "$program" conform "$examples/own_contract/long_push.jsonl" --profile documented
    says RING-3 long_push_empties 'op 4 window'
    gives 2 "$program" conform missing.jsonl
    says 'own_contract: missing.jsonl: cannot open'
    ;;
  run)
    gives 0 "$program" run --subject ring --requests 20
    says 'PASS: 1 cache, ' ' no difference'
    ;;
  *)
    echo "package_test.sh: no case '$case'" >&2
    exit 2
    ;;
esac
