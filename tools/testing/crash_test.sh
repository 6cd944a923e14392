#!/usr/bin/env bash
# crash_test.sh PROGRAM: a crash in a subject of one's own ends with status 3, and its last line names
# the case and the command that repeats it. Sanitizers say more before that line.
set -uo pipefail
err=$("$1" check layered.vector@crashing --cases 5 --jobs 1 2>&1 >/dev/null)
status=$?
want='^crash \(.*\) in layered\.vector case seed1-case0: repeat with: crashing_program check '
if [[ $status != 3 ]] || ! tail -n 1 <<<"$err" | grep -Eq "$want"; then
  printf 'status %s\n%s\n' "$status" "$err" >&2
  exit 1
fi
