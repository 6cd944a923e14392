#!/usr/bin/env bash
# guide_test.sh PAGE OWN_CACHE OWN_CACHES FOLDER: carries out every `build/mine` command of
# docs/own-cache.md in FOLDER. OWN_CACHE is examples/own_cache.cpp as a program, for layered;
# OWN_CACHES that of examples/own_caches, for prefix. Ends with status 1 if a command ends with
# another status than 0 or 1, or a verdict is not what the page says.
set -uo pipefail
page=$1 own_cache=$2 own_caches=$3 folder=$4
rm -rf "${folder:?}" && mkdir -p "$folder" && cd "$folder" || exit 1

commands=0
while read -r line; do
  program=$own_cache
  [[ $line == *prefix.blocks* ]] && program=$own_caches
  read -ra words <<<"${line#build/mine }"
  commands=$((commands + 1))
  status=0
  "$program" "${words[@]}" >"$commands.out" 2>&1 || status=$?
  echo "$status: $line"
  if ((status > 1)); then
    cat "$commands.out"
    exit 1
  fi
done < <(grep '^build/mine ' "$page")
((commands >= 8)) || { echo "the page has few commands: $commands"; exit 1; }

says() {
  cat ./*.out | tr '\n' ' ' | tr -s ' ' | grep -qF -- "$1" || { echo "nothing says: $1"; exit 1; }
}
says 'layered.vector@own does not conform to layered, profile documented, under'
says '1 fault: '
says 'prefix.blocks@own conforms to prefix, profile documented, under'
