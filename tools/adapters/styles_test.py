#!/usr/bin/env python3
"""tools/adapters/styles_test.py KVORACLE: tests that `shrink --style` writes run in the engines that they are for.

A script that a mutant of a reference fails becomes a test of the engine, which agrees with the reference: it passes. With
another answer in its last assertion it fails. Nothing is fetched. Exit status: 0, 1 a test does otherwise, 77 none of the engines is
there, or KVO_ENGINES is not set (`tools/test -L engines` sets it).
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "tools/adapters/python/src"
sys.path.insert(0, str(LIBRARY))
from kvoracle.systems import compiled, install  # noqa: E402

# Style, system, mutants.
STYLES = [
    ("pytest-vllm", "vllm", ["prefix.blocks@mutant:held_go_first", "prefix.blocks@mutant:hit_shorter_than_window"]),
    ("pytest-sglang", "sglang", ["prefix.radix@mutant:salt_is_forgotten", "prefix.radix@mutant:priority_not_raised",
                                 "prefix.radix@mutant:page_freed_for_each_slot"]),
    ("pytest-transformers", "transformers", ["dynamic.dynamic@mutant:crop_one_too_many", "dynamic.dynamic@mutant:mask_offset_one_less",
                                             "dynamic.static@mutant:written_one_slot_late"]),
    ("pytest-mlx-lm", "mlx-lm", ["mlx_lm.kv@mutant:mask_one_off", "mlx_lm.rotating@mutant:kept_slots_overwritten",
                                 "mlx_lm.chunked@mutant:start_stays", "mlx_lm.batch_kv@mutant:merged_padding_one_more"]),
    ("go-ollama", "ollama", ["positional.causal@mutant:full_stores_what_fits", "positional.swa@mutant:resume_into_evicted",
                             "positional.swa_mem@mutant:range_spans_memory", "positional.chunked@mutant:chunk_starts_late"]),
    ("cpp-llama-cpp", "llama-cpp", ["cells.meta@mutant:owner_stays", "cells.kv@mutant:head_stays_behind_removal"]),
]
ENDINGS = {"pytest": "py", "go": "go", "cpp": "cpp"}
# The wanted value of an assertion of each language.
WANTED = {"pytest": r"^    assert .* == (.*)$", "go": r"want := (.*); got != want", "cpp": r"GGML_ASSERT\(.* == (.*)\);$"}


def written(kvoracle, style, mutant, folder):
    """The test of a script that the mutant fails."""
    name = mutant.partition(":")[2]
    subprocess.run([kvoracle, "check", mutant, "--profile", "original", "--cases", "40", "--repros", f"{name}.logs", "--no-timings",
                    "--shrink-time", "1"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    file = folder / f"{name}.{ENDINGS[style.partition('-')[0]]}"
    for log in sorted((folder / f"{name}.logs").glob("*.jsonl")):  # a style need not have words for each
        shrunk = subprocess.run([kvoracle, "shrink", log, "--subject", mutant, "--style", style, "-o", file], cwd=folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if shrunk.returncode == 1:
            return file
    raise SystemExit(f"{mutant}: no script for {style}")


def altered(style, file):
    """The same test with another wanted answer, if it wants a number or a truth value."""
    text = file.read_text(encoding="utf-8")
    others = {"true": "false", "false": "true", "True": "False", "False": "True"}
    for wanted in reversed(list(re.finditer(WANTED[style.partition("-")[0]], text, re.M))):
        found = list(re.finditer(r"(?<![\w.])\d+(?![\w.])|\b[Tt]rue\b|\b[Ff]alse\b", wanted[1]))
        if found:
            begin, end = wanted.start(1) + found[-1].start(), wanted.start(1) + found[-1].end()
            other = others.get(text[begin:end]) or str(int(text[begin:end]) + 1)
            made = file.with_name(f"altered_{file.name}")
            made.write_text(text[:begin] + other + text[end:], encoding="utf-8")
            return made
    return None


def passes(style, system, folder, command, files):
    """Whether each of these tests passes."""
    version = install.SYSTEMS[system].version
    if system == "ollama":
        return [not any(compiled.ollama_tests(folder, version, file, f"style{number}").values()) for number, file in enumerate(files)]
    if system == "llama-cpp":
        return [compiled.llama_test(folder, version, file).returncode == 0 for file in files]
    at = command.index("-m")
    told = subprocess.run([*command[:at], "-m", "kvoracle.systems.findings", system, *files, *command[at + 2:]],
                          stdout=subprocess.PIPE, text=True, check=True)
    return [line.startswith("holds") for line in told.stdout.splitlines()]


def main():
    kvoracle = pathlib.Path(sys.argv[1]).resolve()
    if not os.environ.get("KVO_ENGINES"):
        print("skipped: tools/test -L engines runs it")
        return 77
    compiled.FETCHES = False
    folder, wrong, tried = install.default_folder(), 0, 0
    for style, system, mutants in STYLES:
        try:
            command = install.SYSTEMS[system].command(folder, install.SYSTEMS[system].version)
        except compiled.Absent as why:
            print(f"skipped: {style}: {why}")
            continue
        with tempfile.TemporaryDirectory() as work:
            tests = [written(kvoracle, style, mutant, pathlib.Path(work)) for mutant in mutants]
            others = [other for test in tests if (other := altered(style, test))]
            passed = passes(style, system, folder, command, tests + others)
            right = passed == [True] * len(tests) + [False] * len(others) and others
            if not right:
                print(*(test.read_text(encoding="utf-8") for test in tests), sep="\n")
            print(f"{style}: {len(tests)} tests, {len(others)} with another answer: {passed}", flush=True)
            wrong, tried = wrong + (not right), tried + 1
    return 1 if wrong else 0 if tried else 77


if __name__ == "__main__":
    sys.exit(main())
