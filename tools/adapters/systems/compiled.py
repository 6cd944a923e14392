"""Builds the adapters of systems whose caches are compiled: Ollama's and zerfoo's with Go, llama.cpp's with a C++ compiler,
those of crates with Rust."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
from typing import Callable

HERE = pathlib.Path(__file__).resolve().parent
FINDINGS = HERE.parents[2] / "findings"
FETCHES = True
"""Whether what is missing may be fetched."""


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


def library(into: pathlib.Path, language: str) -> pathlib.Path:
    """The runtime library of adapters in a language."""
    made = HERE.parent / language / "kvoracle"
    if not made.is_dir():  # a wheel: the command has it
        made = into / f"{language}-runtime" / "kvoracle"
        if not made.is_dir():
            done("kvoracle", "adapter", "new", "--language", language, "--contract", "layered.vector", made.parent, folder=into)
    return made


def ollama(into: pathlib.Path, version: str) -> list[str]:
    """The package kvcache of a release, from the module proxy of Go, without cgo."""
    if [int(each) for each in version.split(".")[:2] if each.isdigit()] < [0, 13]:
        raise Absent("the adapter drives releases from 0.13 on: the backend's interface was another before")
    folder = into / f"ollama-{version}"
    adapter, sources = folder / "adapter", sorted((HERE / "ollama").glob("*.go"))
    runtime = library(into, "go")
    if stale(adapter, [*sources, *runtime.glob("*.go")]):
        if not FETCHES and not folder.exists():
            raise Absent("it is not installed")
        folder.mkdir(exist_ok=True)
        for each in sources:
            shutil.copy(each, folder)
        (folder / "go.mod").write_text(
            f"module ollama\n\ngo 1.24.1\n\nrequire github.com/ollama/ollama v{version}\n\nrequire kvoracle v0.0.0\n\n"
            f"replace kvoracle => {runtime}\n", encoding="utf-8")
        go("mod", "tidy", folder=folder)
        go("build", "-buildvcs=false", "-o", "adapter.part", ".", folder=folder)
        (folder / "adapter.part").rename(adapter)
    return [str(adapter)]


def go(*words: str, folder: pathlib.Path) -> None:
    settings = {"CGO_ENABLED": "0"} if FETCHES else {"CGO_ENABLED": "0", "GOPROXY": "off", "GOFLAGS": "-mod=mod"}
    done("go", *words, folder=folder, **settings)


def ollama_tests(into: pathlib.Path, version: str, file: pathlib.Path, name: str) -> dict[str, str]:
    """Each test of a file with what it prints: nothing where it passes. It runs in a copy of the package kvcache with this name."""
    module = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", "github.com/ollama/ollama"], cwd=into / f"ollama-{version}",
                            stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    folder = into / f"ollama-{version}" / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pathlib.Path(module) / "kvcache", folder, copy_function=shutil.copyfile)
    own = folder / "promises_test.go"
    shutil.copyfile(file, own)
    found = go_tests(folder.parent, own, f"./{name}", GOFLAGS="-mod=mod")
    shutil.rmtree(folder)
    return found


def go_tests(folder: pathlib.Path, file: pathlib.Path, *words: str, **settings: str) -> dict[str, str]:
    """Each test of a file with what it prints: nothing where it passes. Nothing is fetched."""
    names = re.findall(r"^func (Test\w+)", file.read_text(encoding="utf-8"), re.M)
    told = subprocess.run(["go", "test", "-vet=off", "-json", "-run", f"^({'|'.join(names)})$", *words], cwd=folder,
                          env={**os.environ, "CGO_ENABLED": "0", "GOPROXY": "off", **settings}, stdout=subprocess.PIPE, text=True)
    events = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    if not any(event.get("Test") in names for event in events):
        raise Absent(f"go test fails: {told.stdout}")
    faults = {event["Test"] for event in events if event["Action"] == "fail" and "Test" in event}
    told_of = re.compile(r"^ +\w+_test\.go:|\sError:|\sMessages:")
    printed = {name: " ".join(" ".join(event["Output"].split()) for event in events
                              if event.get("Test") == name and told_of.search(event.get("Output", "")))
               for name in names}
    return {name: printed[name] or "fails" if name in faults else "" for name in names}


def ollama_findings(into: pathlib.Path, version: str) -> dict[str, str]:
    """Each test of findings/ollama with what it prints: nothing where the promise holds."""
    return ollama_tests(into, version, FINDINGS / "ollama" / "promises_test.go", "findings")


ZERFOO = {"zerfoo": "", "ztensor": "0.1.0", "float16": "0.2.0", "float8": "0.2.0", "ztoken": "0.1.0"}
"""Modules of zerfoo with their releases; its own is the one that is asked for."""


def zerfoo(into: pathlib.Path, version: str) -> list[str]:
    """The package generate of checkouts, which stay as they are. An overlay of Go compiles the files of inside/ into them: what
    the adapter shows beside the exported functions, and a device on the host. It gives sampling.go stand-ins for
    what it imports."""
    checkouts = pathlib.Path(os.environ.get("KVO_ZERFOO", "")).resolve()
    if not os.environ.get("KVO_ZERFOO") or not all((checkouts / name / "go.mod").is_file() for name in ZERFOO):
        wanted = ", ".join(f"{name} {given or version}" for name, given in ZERFOO.items())
        raise Absent(f"set KVO_ZERFOO to a folder with checkouts of {wanted}")
    folder, own = into / f"zerfoo-{version}", HERE / "zerfoo"
    adapter, runtime = folder / "adapter", library(into, "go")
    sources = [*own.rglob("*.go"), *runtime.glob("*.go"), *(checkouts / "zerfoo" / "generate").glob("*.go")]
    replaced = "".join(f"replace github.com/zerfoo/{name} => {checkouts / name}\n" for name in ZERFOO)
    module = (f"module adapter\n\ngo 1.25.0\n\nrequire kvoracle v0.0.0\n\nreplace kvoracle => {runtime}\n\n{replaced}\nrequire (\n"
              + "".join(f"\tgithub.com/zerfoo/{name} v{given or version}\n" for name, given in ZERFOO.items()) + ")\n")
    written = folder / "written.mod"
    if not FETCHES and not folder.exists():
        raise Absent("it is not installed")
    if stale(adapter, sources) or not written.exists() or written.read_text(encoding="utf-8") != module:
        for each in folder.rglob("*.go"):
            each.unlink()
        shutil.copytree(own, folder, dirs_exist_ok=True)
        for name in ("go.mod", "written.mod"):
            (folder / name).write_text(module, encoding="utf-8")
        sampling, inside = checkouts / "zerfoo" / "generate" / "sampling.go", folder / "inside"
        text = sampling.read_text(encoding="utf-8")
        for name, package in {"math": "math", "rand": "math/rand/v2", "sort": "sort"}.items():
            text = text.replace(f'\t"{package}"\n', f'\t{name} "adapter/standin"\n')
        (folder / "sampling.txt").write_text(text, encoding="utf-8")
        overlay = {str(checkouts / each.relative_to(inside)): str(each) for each in inside.rglob("*.go")}
        for name in ("zerfoo", "ztensor"):
            cuda = checkouts / name / "internal" / "cuda"
            overlay |= {str(each): "" for each in cuda.glob("purego_*_arm64*")}
            overlay[str(cuda / "purego_other.go")] = str(inside / "zerfoo" / "internal" / "cuda" / "purego_other.go")
        (folder / "overlay.json").write_text(json.dumps({"Replace": {**overlay, str(sampling): str(folder / "sampling.txt")}}),
                                             encoding="utf-8")
        go("build", "-mod=mod", "-overlay=overlay.json", "-buildvcs=false", "-o", "adapter.part", ".", folder=folder)
        (folder / "adapter.part").rename(adapter)
    return [str(adapter)]


def checkout(variable: str, repository: str, version: str, file: str) -> pathlib.Path:
    """The checkout of a repository that a variable of the environment names. It has the file."""
    named = os.environ.get(variable, "")
    if not named or not (pathlib.Path(named) / file).is_file():
        raise Absent(f"set {variable} to a checkout of {repository} at {version}")
    return pathlib.Path(named).resolve()


def llm_d_router(into: pathlib.Path, version: str) -> list[str]:
    """The packages kvcache and kvevents of a checkout, which stays as it is. What they depend on is that of its go.mod, but for
    ZMQ's sockets."""
    source = checkout("KVO_LLM_D_ROUTER", "github.com/llm-d/llm-d-router", version, "pkg/kvevents/pool.go")
    folder, own, runtime = into / f"llm-d-router-{version}", HERE / "llm_d_router", library(into, "go")
    adapter, written = folder / "adapter", folder / "written.mod"
    sources = [*own.rglob("*.go"), *runtime.glob("*.go"), *(source / "pkg" / "kvcache").rglob("*.go"),
               *(source / "pkg" / "kvevents").rglob("*.go")]
    module = (source / "go.mod").read_text(encoding="utf-8").replace("module github.com/llm-d/llm-d-router\n", "module adapter\n")
    module += (f"\nrequire github.com/llm-d/llm-d-router v0.0.0\n\nreplace github.com/llm-d/llm-d-router => {source}\n\n"
               f"require kvoracle v0.0.0\n\nreplace kvoracle => {runtime}\n\n"
               "replace github.com/go-zeromq/zmq4 => ./zmq4\n")
    if not FETCHES and not folder.exists():
        raise Absent("it is not installed")
    folder.mkdir(exist_ok=True)
    if stale(adapter, sources) or not written.exists() or written.read_text(encoding="utf-8") != module:
        for each in [*own.glob("*.go"), source / "go.sum"]:
            shutil.copyfile(each, folder / each.name)
        shutil.copytree(own / "zmq4", folder / "zmq4", dirs_exist_ok=True)
        (folder / "zmq4" / "go.mod").write_text("module github.com/go-zeromq/zmq4\n\ngo 1.24\n", encoding="utf-8")
        for name in ("go.mod", "written.mod"):
            (folder / name).write_text(module, encoding="utf-8")
        go("build", "-mod=mod", "-buildvcs=false", "-o", "adapter.part", ".", folder=folder)
        if FETCHES:  # for its own tests
            go("mod", "download", "github.com/stretchr/testify", "github.com/davecgh/go-spew", "github.com/pmezard/go-difflib",
               "gopkg.in/yaml.v3", folder=folder)
        (folder / "adapter.part").rename(adapter)
    return [str(adapter), version]


def llm_d_router_findings(into: pathlib.Path, version: str) -> dict[str, str]:
    """Each test of findings/llm_d_router with what it prints: nothing where the promise holds. An overlay of Go has it in the place
    of the tests of the package kvevents."""
    llm_d_router(into, version)
    source = pathlib.Path(os.environ["KVO_LLM_D_ROUTER"]).resolve()
    package, file = source / "pkg" / "kvevents", FINDINGS / "llm_d_router" / "promises_test.go"
    overlay = into / f"llm-d-router-{version}" / "findings.json"
    replaced = {**{str(each): "" for each in package.glob("*_test.go")}, str(package / file.name): str(file)}
    overlay.write_text(json.dumps({"Replace": replaced}), encoding="utf-8")
    return go_tests(source, file, "-overlay", str(overlay), "./pkg/kvevents", GOFLAGS="-mod=readonly")


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
        if not FETCHES:
            raise Absent("it is not installed")
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


def llama_test(into: pathlib.Path, version: str, file: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Builds a test of one file, and runs it."""
    llama_cpp(into, version)
    folder = llama_sources(into, version) / "release"
    flags, objects = llama_objects(folder.parent, ["-O1", "-DNDEBUG"], folder)
    program = file.with_suffix("")
    done("g++", "-std=c++20", *flags, file, *objects, "stand_in.o", "-o", program, *LLAMA_LINK, folder=folder)
    return subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def llama_findings(into: pathlib.Path, version: str) -> dict[str, str]:
    """Each test of findings/llama_cpp with what it prints: nothing where the promise holds."""
    llama_cpp(into, version)
    sources = llama_sources(into, version)
    folder, test = sources / "release", FINDINGS / "llama_cpp" / "test-memory-promises.cpp"
    flags, objects = llama_objects(sources, ["-O1", "-DNDEBUG", "-fsanitize=address"], folder)  # the objects are those of the adapter
    program = folder / "findings"
    if stale(program, [test]):
        batch = sources / "src" / "llama-batch.cpp"  # where batch_without_positions writes
        done("g++", "-std=c++20", *flags, test, batch, *(each for each in objects if "llama-batch" not in each.name), "stand_in.o",
             "-o", program, *LLAMA_LINK, folder=folder)
    names = re.findall(r"^void (\w+)\(\) \{", test.read_text(encoding="utf-8"), re.M)
    told = {name: subprocess.run([program, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for name in names}
    return {name: "; ".join(re.findall(r"FAIL .*|ERROR: .*", each.stdout)) if each.returncode else "" for name, each in told.items()}


def _crate(into: pathlib.Path, name: str, version: str) -> tuple[pathlib.Path, list[pathlib.Path]]:
    """The project of followers/ with one crate, in that release, and the files that were copied to it."""
    folder, own = into / f"{name}-{version}", HERE / "followers"
    manifest = re.sub(rf'^({name} = .*version = )"=[^"]*"', rf'\1"={version}"', (own / "Cargo.toml").read_text(encoding="utf-8"),
                      flags=re.M).replace("../../rust/kvoracle", str(library(into, "rust")))
    if not FETCHES and not folder.exists():
        raise Absent("it is not installed")
    folder.mkdir(exist_ok=True)
    if not (folder / "Cargo.toml").exists() or (folder / "Cargo.toml").read_text(encoding="utf-8") != manifest:
        (folder / "Cargo.toml").write_text(manifest, encoding="utf-8")
    sources = sorted(own.glob("*.rs"))
    for each in sources:
        if stale(folder / each.name, [each]):
            shutil.copyfile(each, folder / each.name)
    return folder, [folder / "Cargo.toml", *(folder / each.name for each in sources)]


def crate(name: str) -> Callable[[pathlib.Path, str], list[str]]:
    """The adapter of a follower that is a crate, from the registry of crates."""
    def command(into: pathlib.Path, version: str) -> list[str]:
        folder, sources = _crate(into, name, version)
        adapter = folder / "target" / "release" / "followers"
        if stale(adapter, sources):
            done("cargo", "build", *([] if FETCHES else ["--offline"]), "--quiet", "--release", "--features", name, folder=folder)
        return [str(adapter), name, version]
    return command


def crate_findings(name: str) -> Callable[[pathlib.Path, str], dict[str, str]]:
    """Each test of findings/NAME with what it prints: nothing where the promise holds."""
    def findings(into: pathlib.Path, version: str) -> dict[str, str]:
        folder, _ = _crate(into, name, version)
        found = {}
        for file in sorted((FINDINGS / name.replace("-", "_")).glob("*.rs")):
            (folder / "tests").mkdir(exist_ok=True)
            if stale(folder / "tests" / file.name, [file]):
                shutil.copyfile(file, folder / "tests" / file.name)
            words = ["cargo", "test", "--offline", "--quiet", "--release", "--features", name, "--test", file.stem]
            told = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True).stdout
            for test in re.findall(r"^fn (\w+)\(\) \{", file.read_text(encoding="utf-8"), re.M):
                why = re.search(rf"^---- {test} stdout ----\n(?:\n?thread .* panicked at .*\n)?(.*)", told, re.M)
                found[test] = why[1] if why else ""
            if "test result:" not in told:
                raise Absent(f"cargo test fails: {told}")
        return found
    return findings
