#!/usr/bin/env bash
# tools/adapters/adapters_test.sh KVORACLE LANGUAGE: caches in a language are sound under their learned
# conventions, and a fault of each is reported with a script of six operations or fewer.
# KVO_ADAPTER_CASES: random cases of a cache (default: 200 of layered.vector, 50 of prefix.blocks, which cost more). Exit
# status 77: the language is not here, or without that number it has another day of GTEST_RANDOM_SEED.
set -euo pipefail
kvoracle=$(readlink -f -- "$1")
language=$2
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
cases=${KVO_ADAPTER_CASES:-200}
days=(go rust c cpp)
if [[ -z ${KVO_ADAPTER_CASES:-} && -n ${GTEST_RANDOM_SEED:-} && " ${days[*]} " == *" $language "* &&
  ${days[GTEST_RANDOM_SEED % 4]} != "$language" ]]; then
  echo "skipped: the day of ${days[GTEST_RANDOM_SEED % 4]}"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

needs() {
  command -v "$1" >/dev/null || {
    echo "skipped: no $1"
    exit 77
  }
}

# tried KIND SOUND FAULTY [CONVENTIONS]: two variants.
tried() {
  local kind=$1 sound=$2 faulty=$3 given=()
  if (($# > 3)); then
    given=(--conventions "$4")
  fi
  local count=$cases
  if [[ $kind == prefix.blocks && -z ${KVO_ADAPTER_CASES:-} ]]; then
    count=50
  fi
  "$kvoracle" check "$kind@$sound" --profile documented "${given[@]}" --cases "$count" >report 2>&1 || {
    cat report
    return 1
  }
  local status=0
  "$kvoracle" check "$kind@$faulty" --profile documented "${given[@]}" --cases 40 --shrink-time 1 >report 2>/dev/null ||
    status=$?
  local operations
  operations=$(sed -n 's/^ *shrunk to \([0-9]*\) operations\{0,1\}:.*/\1/p' report | sort -n | head -n 1)
  echo "$kind in $language: sound over $count cases; the script of its fault has ${operations:-no} operations"
  if ((status != 1 || ${operations:-99} > 6)); then
    cat report
    return 1
  fi
}

# program KIND FAULTY LANGUAGE CACHE FILE: the failing script of the last report as a program.
program() {
  local log
  log=$(sed -n 's/.*repeat with: kvoracle conform \([^ ]*\) .*/\1/p' report | head -n 1)
  "$kvoracle" shrink "$log" --subject "$1@$2" --profile documented --conventions conventions \
    --as "$3" --cache "$4" -o "$5" 2>/dev/null || true # its status says that the script fails
}

# stand_alone FILE: a program needs nothing of kvoracle.
stand_alone() {
  ! grep -nE '(import|from|use|include|require).*kvoracle|kvoracle(::|\.[A-Z])' "$1"
}

# fails_and_passes FAULTY SOUND: two commands that run a program.
fails_and_passes() {
  if eval "$1" >faulty.txt 2>&1; then
    echo "the program does not fail on the faulty cache"
    return 1
  fi
  eval "$2" >sound.txt 2>&1 || {
    cat sound.txt
    return 1
  }
}

learned() {
  "$kvoracle" learn "$1" --profile documented --cases 200 -o conventions >learned 2>&1 || {
    cat learned
    return 1
  }
}

case $language in
  python)
    needs python3
    export PYTHONPATH=$root/tools/adapters/python/src
    python3 -m unittest discover -q -s "$root/tools/adapters/python/tests"
    for checker in 'mypy --cache-dir /dev/null src' 'ruff check --no-cache' 'ruff format --no-cache --check'; do
      if command -v "${checker%% *}" >/dev/null; then
        (cd "$root/tools/adapters/python" && $checker)
      else
        echo "skipped: no ${checker%% *}"
      fi
    done
    layered="exec:python3 $root/examples/adapters/python/layered_vector.py"
    blocks="exec:python3 $root/examples/adapters/python/prefix_blocks.py"
    learned "layered.vector@$layered"
    tried layered.vector "$layered" "$layered stores_keys_as_values" conventions
    export PYTHONPATH=$PYTHONPATH:$work:$root/examples/adapters/python
    echo 'import layered_vector as own, sys
Cache = lambda config, profile: own.Caches(config, profile, "".join(sys.argv[1:]))' >cache.py
    program layered.vector "$layered stores_keys_as_values" python cache:Cache shrunk.py
    fails_and_passes 'python3 shrunk.py stores_keys_as_values' 'python3 shrunk.py'
    grep -q AssertionError faulty.txt
    stand_alone shrunk.py
    cp "$root/tools/adapters/stand_alone/cache.py" .
    fails_and_passes 'FAULT=1 python3 -I -c "import sys; sys.path.append(\".\"); import shrunk; shrunk.test_shrunk()"' \
      'PYTHONPATH= python3 shrunk.py'
    grep -q AssertionError faulty.txt
    tried prefix.blocks "$blocks" "$blocks whole_prompt_is_hit"
    ;;
  c | cpp)
    compiler=(cc -std=gnu11)
    [[ $language == c ]] || compiler=(c++ -std=c++17)
    needs "${compiler[0]}"
    for cache in layered_vector prefix_blocks; do
      for fault in sound FAULT; do
        "${compiler[@]}" -Wall -Wextra -Werror -O2 -shared -fPIC -I "$root/tools/adapters/c" -D$fault \
          "$root/examples/adapters/$language/$cache.$language" -o $cache.$fault.so
      done
    done
    learned layered.vector@lib:./layered_vector.sound.so
    tried layered.vector lib:./layered_vector.sound.so lib:./layered_vector.FAULT.so conventions
    program layered.vector lib:./layered_vector.FAULT.so $language '' shrunk.$language
    for fault in sound FAULT; do
      "${compiler[@]}" -Wall -Wextra -Werror -c shrunk.$language -o shrunk.o # without the header
      "${compiler[@]}" -I "$root/tools/adapters/c" -D$fault shrunk.o \
        "$root/examples/adapters/$language/layered_vector.$language" -o shrunk.$fault
    done
    stand_alone shrunk.$language
    fails_and_passes ./shrunk.FAULT ./shrunk.sound
    # A crash has its place in the source.
    sed -E 's/case (ADVANCE|kAdvance):/& __builtin_trap();/' "$root/examples/adapters/$language/layered_vector.$language" >crashes.$language
    "${compiler[@]}" -g -shared -fPIC -I "$root/tools/adapters/c" crashes.$language -o crashes.so
    "$kvoracle" check layered.vector@lib:./crashes.so --profile documented --conventions conventions --cases 3 >report 2>&1 || true
    grep -q 'crashed (SIGILL)' report && grep -q "call.* at .*/crashes.$language:" report || {
      cat report
      exit 1
    }
    tried prefix.blocks lib:./prefix_blocks.sound.so lib:./prefix_blocks.FAULT.so
    ;;
  go)
    needs go
    export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local
    (cd "$root/tools/adapters/go/kvoracle" && go vet ./... && go test ./...)
    (cd "$root/examples/adapters/go" && go vet ./... && go build -o "$work/caches" .)
    learned layered.vector@exec:./caches
    tried layered.vector exec:./caches "exec:./caches stores_keys_as_values" conventions
    cp -r "$root/tools/adapters" "$root/examples/adapters/go" .
    sed -i "s|=> .*|=> $work/adapters/go/kvoracle|" go/go.mod
    program layered.vector 'exec:./caches stores_keys_as_values' go '' go/shrunk_test.go
    sed -i 's/^var fault = .*/var fault = os.Getenv("FAULT")/' go/main.go
    fails_and_passes '(cd go && FAULT=stores_keys_as_values go test ./...)' '(cd go && go test ./...)'
    grep -q 'want {"v"' faulty.txt
    stand_alone go/shrunk_test.go
    gofmt -d go/shrunk_test.go | tee /dev/stderr | wc -l | grep -qx 0
    mkdir own
    printf 'module own\n\ngo 1.20\n' >own/go.mod
    cp go/shrunk_test.go "$root/tools/adapters/stand_alone/cache.go" own
    fails_and_passes '(cd own && FAULT=1 go test -vet=all ./...)' '(cd own && go test ./...)'
    grep -q 'want {"v"' faulty.txt
    tried prefix.blocks exec:./caches "exec:./caches whole_prompt_is_hit"
    ;;
  rust)
    needs cargo
    export CARGO_TARGET_DIR=$work/target CARGO_NET_OFFLINE=true
    for kind in layered.vector prefix.blocks; do
      "$kvoracle" adapter new --language rust --contract $kind $kind >/dev/null
      (cd $kind && cargo build -q --release && cp "$work/target/release/cache" "$work/$kind.cache")
    done
    (cd layered.vector/kvoracle && cargo test -q)
    ! command -v rustfmt >/dev/null || (cd layered.vector && cargo fmt --all --check)
    learned layered.vector@exec:./layered.vector.cache
    tried layered.vector exec:./layered.vector.cache "exec:./layered.vector.cache stores_keys_as_values" conventions
    program layered.vector "exec:./layered.vector.cache stores_keys_as_values" rust '' shrunk.rs
    cat shrunk.rs >>layered.vector/src/main.rs
    sed -i 's/std::env::args().nth(1).as_deref()/std::env::var("FAULT").ok().as_deref()/' layered.vector/src/main.rs
    fails_and_passes '(cd layered.vector && FAULT=stores_keys_as_values cargo test -q)' '(cd layered.vector && cargo test -q)'
    grep -q 'assertion.*left == right' faulty.txt
    stand_alone shrunk.rs
    mkdir -p own/src
    printf '[package]\nname = "own"\nversion = "0.1.0"\nedition = "2021"\n' >own/Cargo.toml
    cat "$root/tools/adapters/stand_alone/cache.rs" shrunk.rs >own/src/lib.rs
    fails_and_passes '(cd own && FAULT=1 cargo test -q)' '(cd own && cargo test -q)'
    grep -q 'assertion.*left == right' faulty.txt
    tried prefix.blocks exec:./prefix.blocks.cache "exec:./prefix.blocks.cache whole_prompt_is_hit"
    ;;
  all_kinds) # the references of this program, as an adapter
    mapfile -t all < <("$kvoracle" list subjects | grep -oE '^ *[a-z_]+\.[a-z_]+@reference ' | tr -d ' ' | sort -u)
    "$kvoracle" check "@exec:$kvoracle adapter serve ${all[*]}" --law agrees_with_reference \
      --cases $((10 * ${#all[@]})) >report 2>&1 || {
      cat report
      exit 1
    }
    echo "${#all[@]} kinds, the same as their references"
    ;;
  *)
    echo "no language $language" >&2
    exit 2
    ;;
esac
