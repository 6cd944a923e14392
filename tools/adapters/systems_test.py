#!/usr/bin/env python3
"""tools/adapters/systems_test.py KVORACLE SYSTEM KIND [LOG]: a published engine, driven by its adapter, is judged.

The release must be in the cache (`python3 -m kvoracle.systems.install SYSTEM`); nothing is fetched here. Its recorded cases in LOG
and random ones agree with the reference in profile original. In profile documented faults are found, and each test of
findings/SYSTEM fails on it. Exit status: 0, 1 a difference, 77 the release is not in the cache.
"""
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "tools/adapters/python/src"
CASES = "35"  # 2,200 operations; the next one has 100,000


def run(*words, **options):
    print("+", shlex.join(map(str, words)), flush=True)
    return subprocess.run(list(map(str, words)), **options)


def main():
    kvoracle, system, kind, *logs = sys.argv[1:]
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY)}
    found = run(sys.executable, "-m", "kvoracle.systems.install", system, "--cached", env=environment,
                stdout=subprocess.PIPE, text=True)
    if found.returncode:
        print(f"skipped: {system} is not in the cache")
        return 77
    command = found.stdout.strip()
    subject = f"{kind}@exec:{command}"
    check = [kvoracle, "check", subject, "--cases", CASES, "--seed", "7", "--shrink-time", "1", "--no-timings", "--profile"]
    wrong = [f"{log} does not agree" for log in logs if run(kvoracle, "conform", log, "--subject", subject).returncode]
    if run(*check, "original").returncode:
        wrong.append("random cases do not agree in profile original")
    if run(*check, "documented").returncode != 1:
        wrong.append("no fault is found in profile documented")
    words = shlex.split(command)
    interpreter, module = words.index("-m") - 1, words.index("-m") + 1
    for file in sorted((ROOT / "findings" / system).glob("test_*.py")):
        tests = run(*words[:interpreter + 1], "-m", "kvoracle.systems.findings", system, file, *words[module + 1:],
                    stdout=subprocess.PIPE, text=True)
        print(tests.stdout)
        lines = tests.stdout.splitlines()
        if tests.returncode or not lines or any(not line.startswith("fault ") for line in lines):
            wrong.append(f"{file.name}: a finding is none of this release")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
