#!/usr/bin/env python3
"""tools/commands/docs_test.py KVORACLE: README.md, CONTRIBUTING.md and docs against what the command prints.

A fenced block after one of these marks is compared with the output of a command. Its lines, or the named
columns of its table, must be in the output in the same order; other lines may be between. Times, rates and
ratios count as equal.
  <!-- output of: kvoracle WORDS -->
  <!-- columns subject; cases of: kvoracle WORDS -->
"""
import collections
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/testing"))
import transcript  # noqa: E402

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
SAMPLE = re.compile(r"^<!-- (?:output|columns (.+)) of: (kvoracle .+) -->\n(?:(?!```).*\n)*```.*\n((?:(?!```).*\n)*)```", re.M)
TIMES = re.compile(r"\[[0-9.]+\.\.[0-9.]+x\]|[0-9][0-9.,]*( (ns|us|ms|s|[KMGT]?B/s)|x)(?![a-zA-Z])")


@functools.lru_cache(None)
def output_of(command):
    """What a command prints: some samples are of failures."""
    with tempfile.TemporaryDirectory() as folder:
        status, output = transcript.run(command, "", folder, KVORACLE)
    if status > 1:
        raise AssertionError(f"{command}: status {status}\n{output}")
    return output


def masked(line):
    """Without what depends on the machine, and with single spaces."""
    return re.sub(" +", " ", TIMES.sub("", line)).rstrip(" ")


def rows_of(lines, columns):
    """The rows of the table whose header has these columns: these columns only."""
    rows, header = [], []
    for line in lines:
        cells = list(re.finditer(r"[^ ]+(?: [^ ]+)*", line))
        if not header:
            header = [cell for cell in cells if cell[0] in columns]
            header = header if len(header) == len(columns) else []
        elif not cells:
            break
        else:
            rows.append(" | ".join("".join(cell[0] for cell in cells if cell.start() < column.end()
                                           and column.start() < cell.end()) for column in header))
    return rows


def lacking(columns, sample, output):
    """The first line of a sample that the output lacks, or nothing."""
    want, have = sample.rstrip("\n").split("\n"), output.split("\n")
    if columns:
        want, have = (rows_of(lines, columns.split("; ")) for lines in (want, have))
    else:
        want, have = ([masked(line) for line in lines] for lines in (want, have))
    if not want:
        return "the sample is empty, or lacks a column"
    rest = iter(have)
    return next((line for line in want if line not in rest), None)


def defaults():
    """The defaults in brackets that `help` shows: option -> those of all commands."""
    found = collections.defaultdict(set)
    for command in ("run", "check", "conform", "mutants", "shrink", "bench", "gate", "trace info", "trace generate"):
        text = output_of(f"kvoracle help {command}")
        for option in re.finditer(r"\n  (?:-., )?(--[a-z-]+)[^\n]*((?:\n {8}[^\n]*)*)", text):
            if default := re.search(r"\[([^\]]*)\]\s*$", option[0]):
                found[option[1]].add(default[1])
    return found


class Documents(unittest.TestCase):
    def test_samples_are_what_the_command_prints(self):
        with_samples = set()
        for page in PAGES:
            for columns, command, sample in SAMPLE.findall(page.read_text("utf-8")):
                self.assertIsNone(lacking(columns, sample, output_of(command)), f"{page.name}: {command}")
                with_samples.add(page.name)
        self.assertLessEqual({"README.md", "performance.md"}, with_samples)

    def test_a_stale_sample_is_found(self):
        page = ("<!-- columns subject; cases of: kvoracle run -->\n`run`:\n\n```\n"
                "subject  cases  time\na            4  2.00x\nlonger     123      -\n```\n"
                "<!-- output of: kvoracle list -->\n```\na takes 2.00 us, 3 calls\n```\n")
        (columns, command, table), (none, _, line) = SAMPLE.findall(page)
        self.assertEqual(command, "kvoracle run")
        head = "head\nsubject    cases     time\na              4   1.234x\n"
        self.assertIsNone(lacking(columns, table, head + "longer       123        -\n"))
        self.assertEqual(lacking(columns, table, head + "longer       124        -\n"), "longer | 123")
        self.assertEqual(lacking(columns, table, "subject  time\na  1\n"), "a | 4")
        self.assertIsNone(lacking(none, line, "x\na takes 17.3 ns,  3 calls\ny\n"))
        self.assertEqual(lacking(none, line, "a takes 17.3 ns, 4 calls\n"), "a takes , 3 calls")

    def test_options_have_the_defaults_that_help_shows(self):
        known, compared = defaults(), 0
        for page in PAGES:
            for option, said in re.findall(r"`(--[a-z-]+)` \(([0-9][0-9, ]*)", page.read_text("utf-8")):
                if option in known and "by case" not in known[option]:
                    numbers = {said.replace(" ", ""), re.sub("[ ,]", "", said)}
                    self.assertTrue(known[option] & numbers, f"{page.name}: {option} ({said}), not {known[option]}")
                    compared += 1
        self.assertGreaterEqual(compared, 8)

    def test_the_readme_names_all_contracts_caches_and_commands(self):
        readme = (ROOT / "README.md").read_text("utf-8")
        for cache in json.loads(output_of("kvoracle list --json -"))["caches"]:
            contract, kind = cache["name"].split(".")
            rows = re.findall(rf"\n\|[^|\n]*\|[^|\n]*`{contract}`[^|\n]*\|([^|\n]*)\|", readme)
            self.assertIn(f"`{kind}`", " ".join(rows), contract)
        commands = re.findall(r"\n  ([a-z]+) {2,}", output_of("kvoracle help").partition("Commands:")[2])
        self.assertGreaterEqual(len(commands), 10)
        for command in commands:
            self.assertIn(f"\nkvoracle {command} ", readme)

    def test_the_example_of_a_contract_is_as_short_as_said(self):
        said = int(re.search("under ([0-9]+) lines", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))[1])
        lines = sum(file.read_text("utf-8").count("\n") for file in (ROOT / "examples/own_contract").glob("*.[ch]pp"))
        self.assertTrue(said * 3 / 4 < lines < said, lines)


class Figures(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("tools", "docs", "optimized"):
            (self.root / folder).mkdir()
        shutil.copy(ROOT / "tools/figures", self.root / "tools")

    def write(self, name, text):
        (self.root / name).write_text(text, "utf-8")

    def figures(self, *words, root=None):
        done = subprocess.run([sys.executable, str((root or self.root) / "tools/figures"), *words],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_table_is_stale_when_code_changes_that_it_depends_on(self):
        self.write("optimized/a.cpp", "int a = 1;  // as measured\n")
        mark = self.figures("--hash", "optimized")[1]
        self.assertIn(" of optimized -->", mark)
        table = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
        self.write("docs/performance.md", mark + "`tools/x`:\n\n" + table)
        self.assertEqual(self.figures("--check"), (0, ""))
        self.write("optimized/a.cpp", "// another comment\nint a  =  1;\n")
        self.write("optimized/a_test.cpp", "int b = 2;\n")
        self.assertEqual(self.figures("--check"), (0, ""), "no code changed that is measured")
        self.write("optimized/a.cpp", "int a = 2;\n")
        status, text = self.figures("--check")
        self.assertIn("performance.md:1: stale", text)
        self.assertEqual(status, 0, "a warning")
        self.write("docs/performance.md", mark + "\n" + table + "\nmore\n" + table)
        status, text = self.figures("--check")
        self.assertIn("performance.md:8: a table without a mark", text)
        self.assertEqual(status, 1)

    def test_every_table_of_the_page_has_a_mark(self):
        status, text = self.figures("--check", root=ROOT)
        self.assertEqual(status, 0, text)


if __name__ == "__main__":
    KVORACLE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
