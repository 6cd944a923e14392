"""In what releases of an engine differ, and since which release.

    kvoracle drift SYSTEM --from A --to B

Installs releases side by side (systems/install.py), runs `kvoracle diff` on the caches of A and of a later release, and finds for
each sort of difference the first release that has it, by bisection. Exit status: 0 no difference, 1 differences, 2 a release
cannot be had.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from kvoracle.systems import copies, found, install


SHRINK_TIME = 20
"""Seconds for each sort of difference."""
MOST_SHOWN = 12
"""Operations of a script in the table."""


class Difference(NamedTuple):
    kind: str
    what: str
    since: str
    """The first release that has it."""
    before: str
    """The last one that has not."""
    example: str
    script: list[str]


def listed(system: str) -> list[str]:
    """The releases that the package index or the module proxy has, without pre-releases."""
    if install.SYSTEMS[system].unlisted:
        raise install.Absent(f"releases of {system} are not listed")
    module = install.SYSTEMS[system].module
    package = system.removesuffix("-debug").removesuffix("-rust").removesuffix("-unified").replace("llama-cpp", "llama-cpp-python")
    words = ["go", "list", "-m", "-versions", module] if module else [
        sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", package]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        raise install.Absent(f"no {words[0]}") from None
    if done.returncode:
        raise install.Absent(f"its releases are not listed: {done.stderr.strip()[-200:]}")
    return [each.removeprefix("v") for each in re.findall(r"v?\d[\w.+-]*", done.stdout) if re.fullmatch(r"v?[\d.]+(\.post\d+)?", each)]


def releases(system: str, first: str, last: str) -> list[str]:
    """From `first` to `last`, ascending. Where these are of several minor releases, the last correction of each."""
    known = {*listed(system), install.SYSTEMS[system].version}
    least, most = found.parts(first), found.parts(last)
    between = sorted((each for each in known if least < found.parts(each) < most), key=found.parts)
    if least[:2] != most[:2]:
        between = list({tuple(found.parts(each)[:2]): each for each in between}.values())
    return [first, *between, last]


class Drift:
    def __init__(self, program: str, system: str, into: pathlib.Path, options: list[str]) -> None:
        self._program, self._system, self._into, self._options = program, system, into, options
        self.diff = functools.cache(self._diff)
        self.command = functools.cache(self._command)
        self._without: set[str] = set()
        """Operations that the adapter of the first release does not drive. They are not compared."""
        self._sockets = tempfile.TemporaryDirectory()
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Drift:
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._started:
            each.kill()
            each.wait()
        self._sockets.cleanup()

    def _command(self, version: str) -> str:
        print(f"{self._system} {version}", file=sys.stderr, flush=True)
        words = install.SYSTEMS[self._system].command(self._into, version)
        return shlex.join(self._copied(version, words) if install.SYSTEMS[self._system].slow else words)

    def _copied(self, version: str, words: list[str]) -> list[str]:
        """The command of a copy of an adapter that is started here."""
        at, socket = words.index("-m"), pathlib.Path(self._sockets.name) / version
        self._started.append(subprocess.Popen(
            [*words[:at], "-m", copies.__name__, str(socket), words[at + 1], *sorted(self._without), "--", *words[at + 2:]]))
        while not socket.exists():
            if self._started[-1].poll() is not None:
                raise install.Absent(f"the adapter of {self._system} {version} does not start")
            time.sleep(0.1)
        return [sys.executable, "-S", copies.__file__, str(socket)]

    def kinds(self, version: str) -> list[str]:
        """Of the caches that the adapter of a release has."""
        hello = json.dumps({"id": 1, "hello": {"protocol": 1}}) + "\n"
        done = subprocess.run(self.command(version), shell=True, input=hello, stdout=subprocess.PIPE, text=True)
        if done.returncode or not done.stdout:
            raise install.Absent(f"the adapter of {self._system} {version} does not start")
        kinds = json.loads(done.stdout.splitlines()[0])["hello"]["kinds"]
        rows = [row.split() for each in kinds for row in each["conventions"]]
        self._without.update(row[1] for row in rows if row[0] == "without")
        return [each["kind"] for each in kinds]

    def _diff(self, kind: str, first: str, other: str, shrink_time: int = 0) -> dict[str, Any]:
        """The sorts of difference of two releases, by their names."""
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder) / "diff.json"
            subjects = [f"{kind}@exec:{self.command(version)}" for version in (first, other)]
            done = subprocess.run([self._program, "diff", *subjects, "--json", str(result),
                                   "--shrink-time", str(shrink_time), *self._options],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode not in (0, 1):
                raise install.Absent(f"{kind} of {first} and {other}: {done.stderr.strip()[-500:]}")
            return {each["what"]: each for each in json.loads(result.read_text())["partings"]}

    def differences(self, kind: str, versions: list[str]) -> list[Difference]:
        differences = []
        first, last = versions[0], versions[-1]
        for what, parting in self.diff(kind, first, last).items():
            low, high = 0, len(versions) - 1
            while high - low > 1:
                middle = (low + high) // 2
                if what in self.diff(kind, first, versions[middle]):
                    high = middle
                else:
                    low = middle
            parting = self.diff(kind, first, versions[high], SHRINK_TIME).get(what, parting)
            differences.append(Difference(kind, what, versions[high], versions[low], parting["difference"], parting["script"]))
        return differences


def table(system: str, versions: list[str], differences: list[Difference]) -> str:
    """A row for each difference, with its script. What several kinds share is one row, with the script of the first."""
    first, last, count = versions[0], versions[-1], len(versions)
    lines = [f"{system} {first} to {last}, {count} releases:", "", "| since | kinds | what | for instance | script |", "| --- | --- | --- | --- | --- |"]
    shared: dict[tuple[str, str], list[Difference]] = {}
    for each in differences:
        shared.setdefault((each.since, each.what), []).append(each)
    for (since, what), alike in sorted(shared.items(), key=lambda item: found.parts(item[0][0])):
        script = [f"`{line}`" for line in alike[0].script]
        if len(script) > MOST_SHOWN:
            script[:-MOST_SHOWN] = [f"{len(script) - MOST_SHOWN} operations"]
        kinds = ", ".join(f"`{each.kind}`" for each in alike)
        cells = (since, kinds, f"`{what}`", alike[0].example, "<br>".join(script))
        lines.append("| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines if differences else [lines[0], "", "No difference."]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="kvoracle drift", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=sorted(install.SYSTEMS))
    parser.add_argument("--from", dest="first", required=True, metavar="RELEASE")
    parser.add_argument("--to", dest="last", metavar="RELEASE", help="default: the pinned one")
    parser.add_argument("--cases", default="400", help="random cases of each pair")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--profile", default="original", choices=("original", "documented"))
    parser.add_argument("--into", type=pathlib.Path, default=install.default_folder(), help="where releases are kept")
    parser.add_argument("--program", default="kvoracle", help=argparse.SUPPRESS)
    given = parser.parse_args()
    last = given.last or install.SYSTEMS[given.system].version
    given.into.mkdir(parents=True, exist_ok=True)
    options = ["--cases", given.cases, "--seed", given.seed, "--profile", given.profile]
    try:
        versions = releases(given.system, given.first, last)
        with Drift(given.program, given.system, given.into.resolve(), options) as drift:
            older, newer = drift.kinds(given.first), drift.kinds(last)
            differences = [each for kind in older if kind in newer for each in drift.differences(kind, versions)]
    except install.Absent as why:
        print(f"{given.system}: {why}", file=sys.stderr)
        return 2
    print(table(given.system, versions, differences), end="")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
