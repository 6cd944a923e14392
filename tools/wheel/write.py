#!/usr/bin/env python3
"""tools/wheel/write.py PROGRAM DIR: writes the wheel of PROGRAM, the Python library and the pytest plugin into DIR
and prints its path. The same files give the same bytes.

Exit status: 0 written, 2 PROGRAM needs a newer glibc than the wheel states."""
import base64
import hashlib
import pathlib
import re
import stat
import subprocess
import sys
import tomllib
import zipfile

PYTHON = pathlib.Path(__file__).resolve().parents[1] / "adapters" / "python"
GLIBC = (2, 28)
SHIPPED = (".py", ".typed", ".conventions", ".go", ".rs", ".toml", ".cpp", ".hpp", ".h")


def main(program: str, folder: str) -> int:
    newest = newest_glibc(program)
    if newest > GLIBC:
        print(f"{program} needs glibc {newest}, not {GLIBC} or older", file=sys.stderr)
        return 2
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    print(write_wheel(pathlib.Path(program), pathlib.Path(folder)))
    return 0


def newest_glibc(program: str) -> tuple[int, int]:
    """The newest version of glibc that a dynamic symbol of the program asks for."""
    table = subprocess.run(["objdump", "-T", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return max((int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", table))


def write_wheel(program: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A wheel is a zip file with a list of its files and their digests (packaging.python.org, "binary distribution
    format")."""
    project = tomllib.loads((PYTHON / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    tag = f"py3-none-manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64"
    info = f"{name}-{version}.dist-info"
    library = PYTHON / "src"
    files = {str(path.relative_to(library)): path.read_bytes()
             for folder in (name, f"{name}/systems", f"{name}/systems/*/**") for path in sorted(library.glob(f"{folder}/*"))
             if path.is_file() and path.suffix in SHIPPED}
    files[f"{name}-{version}.data/scripts/kvoracle"] = program.read_bytes()
    extras = project["optional-dependencies"]
    files[f"{info}/METADATA"] = "".join(f"{line}\n" for line in [
        "Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}", *(f"Provides-Extra: {extra}" for extra in extras),
        *(f'Requires-Dist: {needed}; extra == "{extra}"' for extra, all_needed in extras.items() for needed in all_needed),
    ]).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: kvoracle\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/entry_points.txt"] = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in project["entry-points"].items()).encode()
    rows = [f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    wheel = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | (0o755 if "/scripts/" in path else 0o644)) << 16
            archive.writestr(entry, data)
    return wheel


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
