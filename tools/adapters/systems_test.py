#!/usr/bin/env python3
"""tools/adapters/systems_test.py KVORACLE SYSTEM: the pinned release of an engine, driven by its adapter, agrees with its contract.

Its caches answer recorded cases (or the contract's rule cases) and random ones in profile original without a difference, but for
the faults of NAMED, and the engine still has each fault of findings/. Of a system of FOUND_BY random cases alone find a
fault. KVO_SYSTEM_CASES: random cases (60, some thousand operations). The release must be in the folder of
`python3 -m kvoracle.systems.install SYSTEM`; nothing is fetched here. Exit status: 0, 1 a difference, 77 the release is not
there, or KVO_ENGINES is not set (`tools/test -L engines` sets it).
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "tools/adapters/python/src"
sys.path.insert(0, str(LIBRARY))
from kvoracle.systems import compiled, install  # noqa: E402

# What the adapter says of a fault that would end or corrupt its process.
NAMED = {"llama-cpp": "llama_batch_compat::init writes pos_next", "llama-cpp-debug": "llama_batch_compat::init writes pos_next",
         "zerfoo": "an access outside of a buffer on the device"}
# Every recorded case has an operation that it lacks.
RANDOM_ALONE = {"sglang-unified-rust"}
# The reference has no windows. This law judges the system without it, and reports the fault of findings/.
FOUND_BY = {"sglang-window": "recompute_equivalence"}
COMPILED = {"ollama": compiled.ollama_findings, "llama-cpp": compiled.llama_findings, "llama-cpp-debug": lambda *_: {},
            "zerfoo": lambda *_: {}, "kv-index": lambda *_: {}, "llm-d-router": compiled.llm_d_router_findings,
            "dynamo-kv-router": compiled.crate_findings("dynamo-kv-router")}


def contracts_of(command):
    hello = json.dumps({"id": 1, "hello": {"protocol": 1}}) + "\n"
    told = subprocess.run(command, input=hello, stdout=subprocess.PIPE, text=True, check=True)
    kinds = json.loads(told.stdout.splitlines()[0])["hello"]["kinds"]
    return dict.fromkeys(each["kind"].split(".")[0] for each in kinds)


def differences(kvoracle, words, named, folder):
    """What a command reports beside the named faults; its summary alone if there is none."""
    told = subprocess.run([kvoracle, *map(str, words)], text=True, stdout=subprocess.PIPE, cwd=folder)
    shown = re.findall(r"^(?:  shrunk to .*|.* by law \w+: op .*|.*: want .*)$", told.stdout, re.M)
    other = [line for line in shown if named is None or named not in line]
    summary = re.findall(r"^[\d,]+ cases, .*$", told.stdout, re.M)
    print(words[0], *summary[-1:], *other, sep="\n  ", flush=True)
    return bool(other) or not summary or (told.returncode != 0 and named is None)


def finds(kvoracle, subject, count, law, folder):
    """Whether the law reports a fault in random cases."""
    words = ["check", subject, "--cases", count, "--seed", "3", "--shrink-attempts", "0", "--no-timings", "--law", law]
    told = subprocess.run([kvoracle, *words], text=True, stdout=subprocess.PIPE, cwd=folder)
    print(*re.findall(r"^(?:  found in .*|[\d,]+ cases, .*)$", told.stdout, re.M), sep="\n", flush=True)
    return told.returncode == 1 and f"law: {law}" in told.stdout


def findings(system, command, folder, version):
    """Each finding with how it shows; nothing where the promise holds."""
    if system in COMPILED:
        return COMPILED[system](folder, version)
    at = command.index("-m")
    found = {}
    for file in sorted((ROOT / "findings" / system.replace("-", "_")).glob("test_*.py")):
        told = subprocess.run([*command[:at], "-m", "kvoracle.systems.findings", system, file, *command[at + 2:]],
                              stdout=subprocess.PIPE, text=True, check=True)
        for line in told.stdout.splitlines():
            verdict, _, rest = line.partition(" ")
            name, _, why = rest.partition(": ")
            found[name] = (why or "fails") if verdict == "fault" else ""
    return found


def main():
    kvoracle, system = sys.argv[1:]
    if not os.environ.get("KVO_ENGINES"):
        print("skipped: tools/test -L engines runs it")
        return 77
    compiled.FETCHES = False
    folder, version = install.default_folder(), install.SYSTEMS[system].version
    try:
        command = install.SYSTEMS[system].command(folder, version)
    except compiled.Absent as why:
        print(f"skipped: {why}: PYTHONPATH=tools/adapters/python/src python3 -m kvoracle.systems.install {system}")
        return 77
    subject, logs = f"@exec:{shlex.join(command)}", []
    count = os.environ.get("KVO_SYSTEM_CASES", "60")
    if system in FOUND_BY:
        with tempfile.TemporaryDirectory() as work:
            return int(not finds(kvoracle, subject, count, FOUND_BY[system], work))
    for contract in contracts_of(command):
        # Rule cases also hold what a system need not bear; they serve where nothing recorded is in the tree.
        public = [*(ROOT / "traces/logs").glob(f"{contract}.jsonl.gz")]
        logs += public or [*(ROOT / "reference" / contract / "cases").glob("*.cases")]
    recorded = [] if system in RANDOM_ALONE else [["conform", *logs, "--subject", subject]]
    with tempfile.TemporaryDirectory() as work:
        wrong = [differences(kvoracle, [*words, "--profile", "original"], NAMED.get(system), work)
                 for words in (*recorded,
                               ["check", subject, "--cases", count, "--seed", "7", "--shrink-time", "1", "--no-timings",
                                "--law", "agrees_with_reference",
                                "--operation-timeout", "60"])]
    for name, why in findings(system, command, folder, version).items():
        print(f"fault {name}: {why}" if why else f"no fault any more: {name}")
        wrong.append(not why)
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
