#!/usr/bin/env bash
# tools/wheel/wheel_test.sh: builds the wheel and installs it into a root that has Python and no compiler. There
# it runs `kvoracle run`, checks caches in Python and in a shared library, and does what README.md says first.
# Exit status 77: not root, no linker for the wheel (tools/setup --package), or no Python 3.11.
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
skip() {
  echo "skipped: $*"
  exit 77
}
[[ $EUID == 0 ]] && command -v chroot >/dev/null || skip "not root, or no chroot"
[[ -s $root/build/package-toolchain/complete ]] || skip "no linker for the wheel: tools/setup --package installs it"
python=$(python3 -c 'import os; print(os.path.realpath("/proc/self/exe"))')
"$python" -c 'import tomllib' 2>/dev/null || skip "no Python 3.11"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheel=$("$root/tools/package" wheel "$work/wheel" 2>"$work/errors") || {
  cat "$work/errors"
  exit 1
}
size=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $size bytes"
((size < 40 * 1000 * 1000))

# Python, its standard library, pip, a shell, and the shared objects that they load.
there=$work/root
library=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
mkdir -p "$there"/{tmp,user,bin,dev,proc,usr/bin} "$there$(dirname "$python")" "$there$library"
cp -a /dev/null /dev/urandom "$there/dev"
cp "$python" "$there$python"
ln -s "$python" "$there/usr/bin/python3"
cp -L "$(command -v env)" "$there/usr/bin/env"
cp -L /bin/sh "$there/bin/sh"
(cd "$library" && tar c --exclude=test --exclude=config-'*' --exclude=__pycache__ --exclude=ensurepip .) | tar x -C "$there$library"
cp -r "$root"/build/package-toolchain/lib/python3*/site-packages/pip "$there/user/pip"
# Of what the program of the wheel loads, glibc's own alone.
libc=$(ldd "$python" | grep -oE '/[^ ]+/libc\.so\.6')
for part in libpthread.so.0 libdl.so.2 libm.so.6 librt.so.1; do cp -L --parents "$(dirname "$libc")/$part" "$there"; done
{ ldd "$python" /bin/sh "$library"/lib-dynload/*.so || true; } 2>/dev/null |
  grep -oE '/[^ ]+\.so[^ ]*' | grep -v lib-dynload | sort -u | while read -r object; do cp -L --parents "$object" "$there"; done
cp "$wheel" "$there/user"
inside() {
  chroot "$there" /usr/bin/env -i PATH=$(dirname "$python"):/usr/local/bin:/usr/bin:/bin HOME=/tmp PYTHONDONTWRITEBYTECODE=1 sh -c "cd /user && $*"
}
for compiler in cc gcc c++ g++ clang go cargo rustc; do
  if inside "command -v $compiler"; then exit 1; fi
done

inside "PYTHONPATH=/user python3 -m pip --disable-pip-version-check install -q --no-index --break-system-packages --root-user-action ignore /user/*.whl"
inside "kvoracle --version"
inside "kvoracle run --requests 20" >"$work/run"
grep '^PASS' "$work/run"
inside "kvoracle check layered.vector@optimized --cases 20"

# The first example of README.md, and what it says of it.
sed -n '/^```python/,/^```$/{/^```/d;p}' "$root/README.md" >"$there/user/mine.py"
while read -r line; do
  inside "$line" || true # the last command reports a fault
done < <(sed -n '/^pip install/,/^```$/{/^kvoracle/p}' "$root/README.md") >"$work/readme" 2>&1
grep '^  shrunk to' "$work/readme"
grep -qF "$(grep '^shrunk to' "$root/README.md")" "$work/readme"

# The walk of docs/own-cache.md.
sed -n '/^kvoracle adapter new -l python -c/,/^```/{/^`/d;p}' "$root/docs/own-cache.md" >"$there/user/walk.sh"
inside "sh walk.sh" >"$work/walk" 2>&1 || true # the last command reports a fault
grep -q 'shrunk to 3 operations: op 2, v: ' <(tr -s ' \n' ' ' <"$work/walk") || {
  cat "$work/walk"
  exit 1
}

# A shared library, sound and with a crash.
if command -v cc >/dev/null; then
  for crash in '' '__builtin_trap(); '; do
    sed "s/case ADVANCE: /&$crash/" "$root/examples/adapters/c/layered_vector.c" >"$work/cache.c"
    cc -std=gnu11 -O2 -shared -fPIC -I "$root/tools/adapters/c" "$work/cache.c" -o "$there/user/${crash:+crashing_}cache.so"
  done
  inside "kvoracle learn layered.vector@lib:./cache.so --profile documented --cases 100 -o c.conventions >/dev/null"
  inside "kvoracle check layered.vector@lib:./cache.so --profile documented --cases 50 --conventions c.conventions"
  inside "kvoracle check layered.vector@lib:./crashing_cache.so --profile documented --cases 5 --conventions c.conventions" >"$work/crash" 2>&1 || true
  grep -m 1 "crashed (SIGILL)" "$work/crash" || { # functions have no names here: there is no /proc
    cat "$work/crash"
    exit 1
  }
fi
