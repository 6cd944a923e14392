"""Builds the adapters of engines whose caches are compiled: Ollama's with Go, llama.cpp's with a C++ compiler."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent


class Absent(Exception):
    """A release cannot be had; says why."""


def done(*words: str | pathlib.Path, folder: pathlib.Path, **settings: str) -> None:
    """Runs a command; what it prints goes to standard error. Raises Absent if there is no such command, or if it fails."""
    text = " ".join(map(str, words))
    try:
        ended = subprocess.run([str(word) for word in words], cwd=folder, stdout=sys.stderr, env={**os.environ, **settings})
    except FileNotFoundError:
        raise Absent(f"no {words[0]}") from None
    if ended.returncode:
        raise Absent(f"{text} fails")


def stale(made: pathlib.Path, sources: list[pathlib.Path]) -> bool:
    """Whether a program is missing or older than one of its sources."""
    return not made.exists() or any(each.stat().st_mtime > made.stat().st_mtime for each in sources)


def ollama(into: pathlib.Path, version: str) -> list[str]:
    """The package kvcache of a release, from the module proxy of Go, without cgo."""
    if [int(each) for each in version.split(".")[:2] if each.isdigit()] < [0, 13]:
        raise Absent("the adapter drives releases from 0.13 on: the backend's interface was another before")
    folder = into / f"ollama-{version}"
    adapter, sources = folder / "adapter", sorted((HERE / "ollama").glob("*.go"))
    runtime = HERE.parent / "go" / "kvoracle"
    if not runtime.is_dir():  # a wheel: the command has it
        runtime = into / "go-runtime" / "kvoracle"
        if not runtime.is_dir():
            done("kvoracle", "adapter", "new", "--language", "go", "--contract", "layered.vector", runtime.parent, folder=into)
    if stale(adapter, [*sources, *runtime.glob("*.go")]):
        folder.mkdir(exist_ok=True)
        for each in sources:
            shutil.copy(each, folder)
        (folder / "go.mod").write_text(
            f"module ollama\n\ngo 1.24.1\n\nrequire github.com/ollama/ollama v{version}\n\nrequire kvoracle v0.0.0\n\n"
            f"replace kvoracle => {runtime}\n", encoding="utf-8")
        done("go", "mod", "tidy", folder=folder)
        done("go", "build", "-buildvcs=false", "-o", "adapter.part", ".", folder=folder, CGO_ENABLED="0")
        (folder / "adapter.part").rename(adapter)
    return [str(adapter)]


# Of llama.cpp: its memory classes and what they call. The rest of it is not linked (stand_in.cpp).
LLAMA_SOURCES = ["ggml/src/ggml.c", "ggml/src/ggml-alloc.c", "ggml/src/ggml-quants.c", "ggml/src/ggml-backend.cpp",
                 "ggml/src/ggml-threading.cpp", *(f"src/llama-{name}.cpp" for name in [
                     "batch", "hparams", "impl", "io", "memory", "kv-cache", "kv-cache-iswa", "memory-recurrent"])]
LLAMA_FOLDERS = ("src", "include", "ggml/include", "ggml/src", "vendor/nlohmann")
LLAMA_LINK = ["-no-pie", "-Wl,--unresolved-symbols=ignore-all", "-Wl,--wrap=ggml_backend_sched_reset",
              "-Wl,--wrap=ggml_backend_sched_alloc_graph"]


def llama_sources(into: pathlib.Path, version: str) -> pathlib.Path:
    """llama.cpp as the source package of llama-cpp-python has it: the folders of its memory classes."""
    made = into / f"llama-cpp-python-{version}"
    if not made.exists():
        part = into / f"llama-cpp-python-{version}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        done(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps", "--no-binary",
             "llama-cpp-python", "-d", part, f"llama-cpp-python=={version}", folder=into)
        (package,) = part.glob("*.tar.gz")
        with tarfile.open(package) as files:
            for each in files:
                place = each.name.partition("/vendor/llama.cpp/")[2]
                if each.isfile() and place.rpartition("/")[0].startswith(LLAMA_FOLDERS) and place.endswith((".h", ".hpp", ".c", ".cpp")):
                    each.name = place
                    files.extract(each, part, filter="data")
        package.unlink()
        for name in ("ggml", "llama"):  # which CMake would write
            (part / "src" / f"{name}-version.h").write_text(
                f'#define {name.upper()}_VERSION "{version}"\n#define {name.upper()}_COMMIT ""\n', encoding="utf-8")
        part.rename(made)
    return made


def llama_objects(sources: pathlib.Path, flags: list[str], folder: pathlib.Path) -> tuple[list[str], list[pathlib.Path]]:
    """The flags for files that include headers of llama.cpp, and its compiled files."""
    flags = [*flags, "-w", "-D_GNU_SOURCE", f"-I{HERE / 'llama_cpp'}",
             *(f"-I{sources / each}" for each in [*LLAMA_FOLDERS[:-1], "vendor"])]
    objects = []
    for name in LLAMA_SOURCES:
        made = folder / (pathlib.Path(name).name + ".o")
        objects.append(made)
        if not made.exists():
            compiler = ["gcc", "-std=c11"] if name.endswith(".c") else ["g++", "-std=c++17"]
            done(*compiler, *flags, "-c", sources / name, "-o", made.with_suffix(".part"), folder=folder)
            made.with_suffix(".part").rename(made)
    return flags, objects


def llama_cpp(into: pathlib.Path, version: str, debug: bool = False) -> list[str]:
    """The memory classes of llama.cpp, with its assertions or without them."""
    sources = llama_sources(into, version)
    folder = sources / ("debug" if debug else "release")
    folder.mkdir(exist_ok=True)
    adapter, own = folder / "adapter", HERE / "llama_cpp"
    if stale(adapter, list(own.iterdir())):
        flags, objects = llama_objects(sources, ["-O1"] if debug else ["-O2", "-DNDEBUG"], folder)
        for name in ("stand_in", "main"):
            done("g++", "-std=c++20", *flags, "-fno-access-control", "-c", own / f"{name}.cpp", "-o", f"{name}.o", folder=folder)
        done("g++", *objects, "stand_in.o", "main.o", "-o", "adapter.part", *LLAMA_LINK, folder=folder)
        (folder / "adapter.part").rename(adapter)
    return [str(adapter), version]


def llama_cpp_debug(into: pathlib.Path, version: str) -> list[str]:
    return llama_cpp(into, version, debug=True)
