"""Puts a release of an engine where its adapter can drive it, without what the engine needs on a card.

    python3 -m kvoracle.systems.install SYSTEM[==VERSION] [--into DIR] [--cached]

prints the command of its adapter, for `kvoracle check "@exec:COMMAND"`. Of a wheel only the Python files and the metadata are
unpacked, unchanged. Engines that need torch share one environment. What is there is not fetched again. DIR: default
$KVO_SYSTEMS, else ~/.cache/kvoracle/systems. With --cached nothing is fetched. Exit status: 0 printed, 2 the release cannot be had.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import zipfile
from typing import Callable, NamedTuple

from kvoracle.systems import compiled
from kvoracle.systems.compiled import Absent

TORCH = ["torch==2.15.0", "numpy"]
MSGSPEC = ["msgspec==0.22.0"]
MLX = ["mlx[cpu]==0.32.4", "numpy"]
INFERA = ["pyzmq==27.3.0", "msgspec==0.22.0", "xxhash==4.1.0", "prometheus_client==0.26.0"]


def default_folder() -> pathlib.Path:
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return pathlib.Path(os.environ.get("KVO_SYSTEMS") or cache / "kvoracle" / "systems")


def _will_fetch() -> None:
    if not compiled.FETCHES:
        raise Absent("it is not in the cache")


def _pip(python: str, *words: str | pathlib.Path) -> None:
    done = subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, words)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if line.startswith("ERROR: ")]
        raise Absent(f"pip {words[0]}: {said[-1].removeprefix('ERROR: ') if said else done.stdout[-200:]}")


def sources(into: pathlib.Path, package: str, version: str) -> pathlib.Path:
    """The Python files of a wheel, its tree in Rust and its metadata, unpacked into a folder of their own."""
    made = into / f"{package}-{version}"
    if made.exists():
        return made
    part = into / f"{package}-{version}.part"
    _will_fetch()
    shutil.rmtree(part, ignore_errors=True)
    _pip(sys.executable, "download", "--no-deps", "--only-binary", ":all:", "-d", part / "wheel", f"{package}=={version}")
    for wheel in (part / "wheel").iterdir():
        with zipfile.ZipFile(wheel) as files:
            kept = [each for each in files.namelist() if each.endswith((".py", ".dist-info/METADATA")) or "/rust_tree_core/" in each]
            files.extractall(part, kept)
    shutil.rmtree(part / "wheel")
    part.rename(made)
    return made


def environment(into: pathlib.Path, name: str, wanted: list[str]) -> str:
    """The interpreter of a virtual environment that has these releases. Systems that share it add theirs."""
    made = into / name
    python, installed = made / "bin" / "python", made / "releases.txt"
    there = installed.read_text().splitlines() if installed.exists() else []
    missing = [each for each in wanted if each not in there]
    if missing:
        _will_fetch()
    if not there:
        shutil.rmtree(made, ignore_errors=True)
        if subprocess.run([sys.executable, "-m", "venv", made], stdout=sys.stderr).returncode:
            raise Absent("no venv")
    if missing:
        _pip(str(python), "install", *missing)
        installed.write_text("\n".join(there + missing))
    return str(python)


class System(NamedTuple):
    version: str
    """The pinned release."""
    command: Callable[[pathlib.Path, str], list[str]]
    """Installs a release and gives the words that start its adapter."""
    module: str = ""
    """Of a Go module, its path: the module proxy lists its releases, else the package index."""
    unlisted: bool = False
    """Whether nothing lists its releases here."""
    slow: bool = False
    """Whether its adapter takes seconds to start (copies.py)."""


def _library() -> pathlib.Path:
    """Where the package kvoracle is: in a tree, or in a wheel."""
    library = pathlib.Path(__file__).absolute().parents[2] / "python" / "src"
    return library if (library / "kvoracle").is_dir() else pathlib.Path(__file__).absolute().parents[2]


def _from_wheel(package: str, name: str, needs: list[str], module: str = "") -> Callable[[pathlib.Path, str], list[str]]:
    """The adapter of a package whose cache classes import `needs`, installed in the environment `name`. `module` is the
    adapter's, where it does not have the package's name."""
    def command(into: pathlib.Path, version: str) -> list[str]:
        folder = sources(into, package, version)
        python = environment(into, name, needs)
        return ["env", f"PYTHONPATH={_library()}", python, "-m", f"kvoracle.systems.{module or package.replace('-', '_')}",
                "--folder", str(folder)]
    return command


def infera(into: pathlib.Path, version: str) -> list[str]:
    """The package of a checkout, which stays as it is."""
    source = compiled.checkout("KVO_INFERA", "github.com/AMD-AGI/Infera", version, "infera/router/kv_event/client.py")
    return ["env", f"PYTHONPATH={_library()}", environment(into, "infera", INFERA), "-m", "kvoracle.systems.infera",
            "--folder", str(source), "--version", version]


SYSTEMS = {
    "vllm": System("0.33.0", _from_wheel("vllm", "msgspec", MSGSPEC)),
    "sglang": System("0.5.23", _from_wheel("sglang", "torch", TORCH + MSGSPEC), slow=True),
    "sglang-unified": System("0.5.23", _from_wheel("sglang", "torch", TORCH + MSGSPEC, "sglang.unified"), slow=True),
    "sglang-unified-rust": System("0.5.23", _from_wheel("sglang", "torch", TORCH + MSGSPEC, "sglang.unified_rust"), slow=True),
    "sglang-window": System("0.5.23", _from_wheel("sglang", "torch", TORCH + MSGSPEC, "sglang.window"), slow=True),
    "transformers": System("5.23.0", _from_wheel("transformers", "torch", TORCH), slow=True),
    "mlx-lm": System("0.32.2", _from_wheel("mlx-lm", "mlx", MLX)),
    "ollama": System("0.15.4", compiled.ollama, "github.com/ollama/ollama"),
    "zerfoo": System("1.3.0", compiled.zerfoo, unlisted=True),
    "llm-d-router": System("ebab687927f5", compiled.llm_d_router, unlisted=True),
    "infera": System("5890f7f60750", infera, unlisted=True),
    "llama-cpp": System("0.3.36", compiled.llama_cpp),
    "llama-cpp-debug": System("0.3.36", compiled.llama_cpp_debug),
    "kv-index": System("2.0.0", compiled.crate("kv-index"), unlisted=True),
    "dynamo-kv-router": System("1.6.1", compiled.crate("dynamo-kv-router"), unlisted=True),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", metavar="SYSTEM[==VERSION]", help=", ".join(SYSTEMS))
    parser.add_argument("--into", type=pathlib.Path, default=default_folder())
    parser.add_argument("--cached", action="store_true", help="print the command only if nothing has to be fetched")
    given = parser.parse_args()
    name, _, version = given.system.partition("==")
    if name not in SYSTEMS:
        print(f"no system {name}; there are {', '.join(SYSTEMS)}", file=sys.stderr)
        return 2
    compiled.FETCHES = not given.cached
    given.into.mkdir(parents=True, exist_ok=True)
    try:
        print(shlex.join(SYSTEMS[name].command(given.into.resolve(), version or SYSTEMS[name].version)))
    except Absent as why:
        print(f"{given.system}: {why}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
