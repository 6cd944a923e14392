"""Where the release is that an adapter drives, and its version."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import pathlib
import re
import sys
from typing import NamedTuple


class Found(NamedTuple):
    folder: pathlib.Path
    """Holds the package's own folder."""
    version: str


def parts(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def nearest(version: str, known: list[str]) -> str:
    """Of the known releases, in ascending order, the newest that is not newer than `version`, else the oldest."""
    older = [each for each in known if parts(each) <= parts(version)]
    return older[-1] if older else known[0]


def find(package: str, arguments: list[str] | None = None) -> Found:
    """The release in --folder DIR, else the installed one. Ends the program with status 2 if there is none. DIR becomes the
    first place where modules are looked for; nothing of the package is imported."""
    parser = argparse.ArgumentParser(description=f"an adapter of {package} (docs/adapters.md)")
    parser.add_argument("--folder", help=f"holds the package {package} and its metadata; default: the installed release")
    folder = parser.parse_args(arguments).folder
    if folder:
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
    try:
        spec = importlib.util.find_spec(package)
        places = list(spec.submodule_search_locations or []) if spec else []
        return Found(pathlib.Path(places[0]).parent, importlib.metadata.version(package.replace("_", "-")))
    except (IndexError, importlib.metadata.PackageNotFoundError, ValueError):
        print(f"{package} is not {'in ' + folder if folder else 'installed for ' + sys.executable}", file=sys.stderr)
        sys.exit(2)
