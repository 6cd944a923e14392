"""Makes the packages of an Infera checkout importable."""

from __future__ import annotations

import argparse
import logging
import sys


def load(arguments: list[str] | None = None) -> str:
    """Takes the modules from --folder. Returns the version that --version names."""
    parser = argparse.ArgumentParser(description="an adapter of Infera (docs/adapters.md)")
    parser.add_argument("--folder", required=True, help="a checkout of Infera")
    parser.add_argument("--version", default="unknown", help="the commit of the checkout")
    given = parser.parse_args(arguments)
    sys.path.insert(0, given.folder)
    logging.getLogger("infera").setLevel(logging.CRITICAL)
    return str(given.version)
