# tools/scripts/progress.sh: sourced by tools/scripts/build.sh and tools/setup. Says on standard error what goes on.
# Plain bash: Debian's awk (mawk) holds back what it reads from a pipe until the pipe is closed.

# progress WHAT [LINE]: one step. On a terminal each takes the place of the one before.
progress() {
  local text=$1${2:+: $2}
  if [[ -t 2 ]]; then
    printf '\r\033[K%.78s' "$text" >&2
  else
    printf '%.100s\n' "$text" >&2
  fi
}

# Takes the line off a terminal, so that what is printed next begins on a line of its own.
progress_done() {
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
}

# follow WHAT LOG: appends standard input to LOG and shows how far it is. A terminal sees every line,
# a file or pipe a counter such as `[12/210]` at each tenth, and something at least every 10 seconds.
follow() {
  local what=$1 log=$2 line tenth shown=-1 next=0
  while IFS= read -r line || [[ -n $line ]]; do
    printf '%s\n' "$line" >>"$log"
    if [[ -t 2 ]]; then
      progress "$what" "$line"
    elif [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      if ((tenth > shown || SECONDS >= next)); then
        progress "$what ${BASH_REMATCH[1]}/${BASH_REMATCH[2]}"
        shown=$tenth
        next=$((SECONDS + 10))
      fi
    elif [[ -n $line ]] && ((SECONDS >= next)); then
      progress "$what" "$line"
      next=$((SECONDS + 10))
    fi
  done
}
