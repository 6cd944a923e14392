#!/usr/bin/env bash
# tools/adapters/projects_test.sh KVORACLE: `adapter new` gives projects that are formatted, that compile,
# and that check runs, in each language that is here and for each kind of cache.
set -euo pipefail
kvoracle=$(readlink -f -- "$1")
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH=$(dirname "$kvoracle"):$PATH
mapfile -t kinds < <("$kvoracle" list subjects | grep -oE '^ *[a-z_]+\.[a-z_]+@reference ' |
  tr -d ' ' | sed 's/@reference//' | sort -u)
languages=(go rust c cpp)
if [[ -z ${KVO_ADAPTER_CASES:-} && -n ${GTEST_RANDOM_SEED:-} ]]; then
  languages=("${languages[GTEST_RANDOM_SEED % 4]}")
fi
languages=(python "${languages[@]}")
for language in "${languages[@]}"; do
  for kind in "${kinds[@]}"; do
    # Types of all contracts are in Python and Go.
    [[ $language == python || $language == go || " layered.vector prefix.blocks positional.causal cells.kv mlx_lm.rotating " == *" $kind "* ]] ||
      continue
    "$kvoracle" adapter new --language "$language" --contract "$kind" "$language/$kind" >/dev/null
  done
done

here=()
if [[ " ${languages[*]} " == *" python "* ]] && command -v python3 >/dev/null; then
  here+=(python)
  for project in python/*; do
    (cd "$project" && python3 -B -c 'import operations; operations.Operations()')
  done
fi
if [[ " ${languages[*]} " == *" go "* ]] && command -v go >/dev/null; then
  here+=(go)
  export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local
  test -z "$(gofmt -l go)" || {
    gofmt -d go | head -n 40
    exit 1
  }
  for kind in layered.vector prefix.blocks cells.kv; do
    (cd "go/$kind" && go vet ./... && go build -o cache .)
  done
fi
if [[ " ${languages[*]} " == *" rust "* ]] && command -v cargo >/dev/null; then
  here+=(rust)
  export CARGO_NET_OFFLINE=true
  for kind in cells.kv mlx_lm.rotating; do (cd "rust/$kind" && cargo build -q --release); done
fi
if [[ " ${languages[*]} " == *" c "* ]] && command -v cc >/dev/null; then
  here+=(c)
  for kind in layered.vector prefix.blocks positional.causal cells.kv; do
    make -s -C "c/$kind" CC="cc -Werror" cache.so
  done
fi
if [[ " ${languages[*]} " == *" cpp "* ]] && command -v c++ >/dev/null; then
  here+=(cpp)
  for kind in layered.vector prefix.blocks cells.kv; do make -s -C "cpp/$kind" CXX="c++ -Werror" cache.so; done
fi

# What each README says first, where there is a small cache.
tried() {
  cd "$work/$1/$2"
  "$kvoracle" learn "$2@$3" --profile documented --cases 40 -o conventions >report 2>&1 || {
    cat report
    exit 1
  }
}
for kind in layered.vector prefix.blocks; do
  [[ " ${here[*]} " != *" python "* ]] || tried python "$kind" 'exec:python3 cache.py'
  [[ " ${here[*]} " != *" go "* ]] || tried go "$kind" exec:./cache
done
[[ " ${here[*]} " != *" c "* ]] || tried c layered.vector lib:./cache.so
[[ " ${here[*]} " != *" cpp "* ]] || tried cpp layered.vector lib:./cache.so

# The walks of docs/own-cache.md: in each language its commands find the fault.
while read -r begin; do
  language=$(sed -E 's/.* -l ([a-z]+) .*/\1/' <<<"$begin")
  [[ " ${here[*]} " == *" $language "* ]] || continue
  rm -rf "$work/walk"
  mkdir "$work/walk"
  cd "$work/walk"
  while read -r line; do
    status=0
    eval "$line" >"$work/walk/report" 2>&1 || status=$?
    ((status <= 1)) || {
      cat "$work/walk/report"
      exit 1
    }
    cat "$work/walk/report" >>"$work/walk/reports"
  done < <(sed -n "/^$begin\$/,/^\`\`\`/{/^\`/d;p}" "$root/docs/own-cache.md")
  tr -s ' \n' ' ' <"$work/walk/reports" >"$work/walk/words"
  grep -q ' conforms to layered, profile documented, under' "$work/walk/words"
  grep -q 'shrunk to 3 operations: op 2, v: ' "$work/walk/words"
done < <(grep '^kvoracle adapter new -l [a-z]* -c' "$root/docs/own-cache.md")
echo "${#kinds[@]} kinds in ${here[*]}"
