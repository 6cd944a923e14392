#!/usr/bin/env bash
# progress_test.sh CASE: one test of tools/scripts/progress.sh and tools/setup; CTest runs each CASE.
# Ends with status 1 and says why when something is not as it should be.
set -uo pipefail
tools=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
source "$tools/scripts/progress.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  printf '%s\n' "$*" "standard error was:" "$(cat -A "$folder/err")" >&2
  exit 1
}

# appears TEXT: waits for it in $folder/err, one second at most.
appears() {
  for _ in {1..20}; do
    if grep -qF -- "$1" "$folder/err"; then return 0; fi
    sleep 0.05
  done
  return 1
}

# A build that is busy until $folder/go is there.
slow_build() {
  printf '[1/20] Building a.o\n'
  until [[ -e $folder/go ]]; do sleep 0.05; done
  for i in {2..20}; do printf '[%s/20] Building %s.o\n' "$i" "$i"; done
}

case ${1:-} in
  first_line)
    # PATH is empty: nothing but bash itself may be needed to follow a build.
    slow_build | PATH='' follow build "$folder/log" 2>"$folder/err" &
    appears 'build 1/20' || fail "no line within a second while the build still runs"
    [[ $(cat "$folder/log") == '[1/20] Building a.o' ]] || fail "the log lacks the first line"
    touch "$folder/go"
    wait "$!" || fail "following a build failed"
    [[ $(wc -l <"$folder/err") == 11 ]] || fail "not one line for each tenth"
    [[ $(tail -n 1 "$folder/err") == 'build 20/20' ]] || fail "the last line is not 20/20"
    [[ $(wc -l <"$folder/log") == 20 ]] || fail "the log is not complete"
    ;;
  terminal)
    command -v script >/dev/null || { echo "skipped: no script(1)"; exit 0; }
    printf '[1/2] a\n[2/2] b\n' >"$folder/build"
    script -qec "bash -c 'source $tools/scripts/progress.sh
      follow build $folder/log <$folder/build; progress_done; echo end >&2'" /dev/null \
      </dev/null >"$folder/err" 2>&1
    want=$'\r\e[Kbuild: [1/2] a\r\e[Kbuild: [2/2] b\r\e[Kend\r'
    [[ $(cat "$folder/err") == "$want" ]] || fail "a terminal does not see one line that changes"
    ;;
  setup)
    # Debian 12 without a single package, and an apt-get that takes its time.
    mkdir "$folder/bin"
    printf 'ID=debian\nVERSION_ID="12"\n' >"$folder/os-release"
    printf '#!/bin/sh\n' >"$folder/bin/dpkg-query"
    cat >"$folder/bin/apt-get" <<EOF
#!/bin/sh
[ "\$1" != install ] || echo "Get:1 somewhere ninja-build"
until [ -e "$folder/go" ]; do sleep 0.05; done
[ "\$1" != install ] || exit 100
EOF
    printf '#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n' >"$folder/bin/sudo"
    chmod +x "$folder"/bin/*
    PATH=$folder/bin:$PATH KVO_SKIP_SETUP=0 KVO_OS_RELEASE=$folder/os-release \
      "$tools/setup" 2>"$folder/err" </dev/null &
    appears 'setup: installing g++' || fail "set-up says nothing within a second"
    touch "$folder/go"
    wait "$!"
    [[ $? == 2 ]] || fail "the status of a failed set-up is not 2"
    appears 'set-up: Get:1 somewhere' || fail "what apt-get does is not shown"
    appears 'could not install: g++' || fail "a failed set-up does not say so"
    ;;
  *)
    echo "progress_test.sh: no case '${1:-}'" >&2
    exit 2
    ;;
esac
