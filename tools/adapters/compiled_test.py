#!/usr/bin/env python3
"""tools/adapters/compiled_test.py KVORACLE SYSTEM LOG: the pinned release of an engine that is compiled agrees with its contract.

SYSTEM is ollama, llama-cpp or llama-cpp-debug. LOG has recorded cases of it. Its adapter answers them and random cases in
profile original, but for the faults that are named here, and the engine still has each fault of findings/.
KVO_SYSTEM_CASES: random cases (60). Exit status 77: the release is not in the folder of
`python3 -m kvoracle.systems.install`. Nothing is fetched.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "adapters" / "python" / "src"))
from kvoracle.systems import compiled, install  # noqa: E402

# What the adapter says of a fault that would end or corrupt its process.
NAMED = {"llama-cpp": "llama_batch_compat::init writes pos_next", "llama-cpp-debug": "llama_batch_compat::init writes pos_next"}
FINDINGS = {"ollama": compiled.ollama_findings, "llama-cpp": compiled.llama_findings}


def other_faults(system, report):
    """Lines of a report that show a difference that is not named."""
    shown = re.findall(r"^(?:  shrunk to .*|.* by law \w+: op .*)$", report, re.M)
    return [line for line in shown if NAMED.get(system, "\n") not in line]


def main():
    kvoracle, system, log = sys.argv[1:]
    compiled.FETCHES = False
    folder, version = install.default_folder(), install.SYSTEMS[system].version
    try:
        command = install.SYSTEMS[system].command(folder, version)
    except compiled.Absent as why:
        print(f"skipped: {why}: PYTHONPATH=tools/adapters/python/src python3 -m kvoracle.systems.install {system}")
        return 77
    subject = f"@exec:{shlex.join(command)}"
    failed = False
    with tempfile.TemporaryDirectory() as work:
        for words in (["conform", log, "--subject", subject],
                      ["check", subject, "--profile", "original", "--cases", os.environ.get("KVO_SYSTEM_CASES", "60"),
                       "--shrink-time", "1", "--no-timings"]):
            told = subprocess.run([kvoracle, *words], text=True, stdout=subprocess.PIPE, cwd=work)
            faults = other_faults(system, told.stdout)
            summary = [line for line in told.stdout.splitlines() if re.match(r"[\d,]+ cases, ", line)]
            print(f"{system} {version}, {words[0]}: {summary[-1] if summary else told.stdout}; not named: {len(faults)}")
            failed |= bool(faults) or not summary
            print("".join(f"  {line}\n" for line in faults), end="")
    for name, fault in FINDINGS[system](folder, version).items() if system in FINDINGS else ():
        print(f"fault {name}: {fault}" if fault else f"holds {name}")
        failed |= not fault
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
