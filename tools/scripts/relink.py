"""tools/scripts/relink.py: the command kvoracle with some of its sources compiled another way.

A finished release build says how each source is compiled and how the command is linked. Sources of
chosen rooms are compiled again with other options, or from changed copies, and linked in front of
all else: so the rest of the tree, most of it, is not built a second time.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"


def build_release():
    """Builds the command as tools/run does. Ends the program if that fails."""
    script = 'source "$0/tools/scripts/build.sh" && build release kvoracle'
    if subprocess.run(["bash", "-c", script, str(ROOT)]).returncode != 0:
        sys.exit(4)


class Source:
    """A source, or several united, of a library: what compiles it, without where it goes to."""

    def __init__(self, entry, words, output):
        self.file = entry["file"]
        self.words = words
        self.object = output


def sources(rooms, apart=False):
    """All sources of the libraries in these rooms, which are folders of the root. `apart`: sources
    that the build compiles together are told one by one."""
    found = []
    for entry in json.loads((RELEASE / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        output = words[words.index("-o") + 1]
        room, _, rest = output.partition("/")
        if room not in rooms or not rest.startswith("CMakeFiles/kvo_") and "/kvo_" not in rest:
            continue
        if "_test.dir" in rest or "sampling_vector" in rest:
            continue
        united = re.findall(r'^#include "(.*)"', pathlib.Path(entry["file"]).read_text(), re.M) \
            if apart and "/Unity/" in entry["file"] else []
        for one in united:
            found.append(Source({"file": one}, plain(words), f"{output}_{pathlib.Path(one).name}.o"))
        if not united:
            found.append(Source(entry, plain(words), output))
    return found


def plain(words):
    """A compiler's words without its name, source, object, warnings and precompiled headers."""
    kept, skip = [], False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-include"):
            skip = True
        elif not word.startswith("-W"):
            kept.append(word)
    return kept


def compile_all(jobs, commands):
    """Runs compilers side by side; gives the complaint of each, empty where all went well."""
    def one(command):
        done = subprocess.run(command, cwd=RELEASE, capture_output=True, text=True)
        return done.stderr if done.returncode else ""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, commands))


def link(compiler, objects, rooms, program, options=()):
    """Links `objects` in front of what kvoracle is made of, without the archives of `rooms`."""
    said = subprocess.run(["ninja", "-C", str(RELEASE), "-t", "commands", "kvoracle"], check=True,
                          capture_output=True, text=True).stdout.strip().splitlines()[-1]
    words = shlex.split(said.removeprefix(": && ").removesuffix(" && :"))
    words[words.index("-o") + 1] = str(program)
    rest = [word for word in words[1:]
            if not (word.endswith(".a") and word.split("/")[0] in rooms)]
    command = [compiler, *options, *map(str, objects), *rest]
    done = subprocess.run(command, cwd=RELEASE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"cannot link {program}:\n{done.stderr[-4000:]}")
