#!/usr/bin/env python3
"""tools/adapters/systems/live_test.py KVORACLE SYSTEM: the pinned release of an engine agrees with its contract.

Its adapter answers the contract's rule cases and random cases in profile original without a mismatch, and the engine still has
each fault of findings/. KVO_SYSTEM_CASES: random cases (100). Exit status 77: the release is not in the folder of
`python3 -m kvoracle.systems.install`. Nothing is fetched.
"""
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "adapters" / "python" / "src"))
from kvoracle.systems import install  # noqa: E402

CONTRACTS = {"mlx-lm": "mlx_lm", "transformers": "dynamic"}


def absent(*_):
    raise install.Absent("it is not installed")


def main():
    kvoracle, system = sys.argv[1:]
    install._pip = absent
    try:
        command = install.SYSTEMS[system].command(install.default_folder(), install.SYSTEMS[system].version)
    except install.Absent:
        print(f"skipped: no {system} here: PYTHONPATH=tools/adapters/python/src python3 -m kvoracle.systems.install {system}")
        return 77
    subject = f"@exec:{shlex.join(command)}"
    rules = sorted((ROOT / "reference" / CONTRACTS[system] / "cases").glob("*.cases"))
    count = os.environ.get("KVO_SYSTEM_CASES", "100")
    judged = [
        subprocess.run([kvoracle, "conform", *rules, "--subject", subject, "--profile", "original"]),
        subprocess.run([kvoracle, "check", subject, "--profile", "original", "--cases", count, "--repros", "failures",
                        "--law", "agrees_with_reference", "recompute_equivalence"]),
    ]
    failed = any(each.returncode for each in judged)
    python = command[: command.index("-m")]  # with its environment
    folder = command[command.index("--folder"):]
    for file in sorted((ROOT / "findings" / system.replace("-", "_")).glob("test_*.py")):
        found = subprocess.run([*python, "-m", "kvoracle.systems.findings", system, file, *folder], text=True,
                               stdout=subprocess.PIPE)
        print(found.stdout, end="")
        failed |= found.returncode != 0 or "holds " in found.stdout
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
