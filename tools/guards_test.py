"""tools/guards: worse, better, new and renamed rows, and what becomes of the command's results. Needs no build."""
import contextlib
import gzip
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

LOADER = importlib.machinery.SourceFileLoader("guards", str(pathlib.Path(__file__).parent / "guards"))
guards = importlib.util.module_from_spec(importlib.util.spec_from_loader("guards", LOADER))
LOADER.exec_module(guards)


def compared(old, new, renamed=None):
    computed = {guards.group(name) for name in {**old, **new}}
    return guards.compare(old, new, renamed or {}, computed)


def complaints(old, new, renamed=None):
    return compared(old, new, renamed)["worse"]


class Compare(unittest.TestCase):
    def test_names_rows_that_are_missing(self):
        self.assertEqual(complaints({"law a": "x"}, {"law b": "x"}), ["law a: was x, is missing"])

    def test_names_a_judge_that_catches_a_mutant_no_more(self):
        old = {"mutant m original": "lockstep, oracle"}
        self.assertEqual(complaints(old, {"mutant m original": "lockstep, law"}),
                         ["mutant m original: was lockstep, oracle, is lockstep, law"])
        self.assertEqual(complaints(old, {"mutant m original": "lockstep, oracle, rule"}), [])

    def test_finds_a_row_under_its_new_name(self):
        old, new = {"state s: a": "original"}, {"state s: c": "original"}
        self.assertEqual(complaints(old, new, {"state s: a": "state s: b", "state s: b": "state s: c"}), [])
        self.assertEqual(complaints(old, {"state s: c": "-"}, {"state s: a": "state s: c"}),
                         ["state s: a -> state s: c: was original, is -"])

    def test_refuses_new_names_of_unknown_rows_and_in_circles(self):
        with self.assertRaisesRegex(guards.BadInput, "'law x': guards.tsv has no row"):
            complaints({"law a": "x"}, {"law a": "x"}, {"law x": "law a"})
        with self.assertRaisesRegex(guards.BadInput, "lead back"):
            complaints({"law a": "x"}, {"law a": "x"}, {"law a": "law b", "law b": "law a"})

    def test_takes_a_rule_case_for_a_test_but_nothing_for_a_recorded_case(self):
        old = {"rule PX-2": "recorded 4, test 3"}
        self.assertEqual(complaints(old, {"rule PX-2": "recorded 4, rule case 1"}), [])
        self.assertEqual(len(complaints(old, {"rule PX-2": "recorded 3, test 3"})), 1)
        self.assertEqual(len(complaints(old, {"rule PX-2": "recorded 4"})), 1)

    def test_counts_mismatches_the_other_way_and_quirks_exactly(self):
        old = {"original logs a": "cases 9, mismatches 1", "documented logs a": "cases 9, PX-48 aborts 2"}
        self.assertEqual(complaints(old, {**old, "original logs a": "cases 9, mismatches 0"}), [])
        self.assertEqual(len(complaints(old, {**old, "original logs a": "cases 9, mismatches 2"})), 1)
        self.assertEqual(len(complaints(old, {**old, "original logs a": "absent: prefix"})), 1)
        self.assertEqual(len(complaints(old, {**old, "documented logs a": "cases 9, PX-48 other 2"})), 1)

    def test_a_contract_that_has_code_now_is_better(self):
        old, new = {"documented logs a": "absent: a"}, {"documented logs a": "cases 9, mismatches 0"}
        self.assertEqual(compared(old, new), {
            "worse": [], "better": ["documented logs a: was absent: a, is cases 9, mismatches 0"], "new": []})
        self.assertEqual(len(complaints(new, old)), 1)

    def test_allows_noise_of_benchmarks_and_of_the_mutation_score(self):
        old = {"bench a": "100.0", "mutation optimized": "score 90.3"}
        self.assertEqual(complaints(old, {"bench a": "104.9", "mutation optimized": "score 89.4"}), [])
        self.assertEqual(len(complaints(old, {"bench a": "105.1", "mutation optimized": "score 89.2"})), 2)

    def test_names_rows_that_are_better_or_new(self):
        self.assertEqual(compared({"mutant m original": "law", "law a": "x"},
                                  {"mutant m original": "law, oracle", "law b": "x"}, {"law a": "law b"}),
                         {"worse": [], "better": ["mutant m original: was law, is law, oracle"], "new": []})
        self.assertEqual(compared({}, {"law b": "x"})["new"], ["law b: x"])

    def test_compares_only_what_was_computed(self):
        self.assertEqual(guards.compare({"bench a": "1"}, {"law a": "x"}, {}, {"law"}),
                         {"worse": [], "better": [], "new": ["law a: x"]})


class Read(unittest.TestCase):
    def test_names_the_line_that_is_no_row(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "table.tsv"
            path.write_text("# comment\nlaw a\tx\nlaw b x\n")
            with self.assertRaisesRegex(guards.BadInput, "table.tsv:3: 'law b x': a line has two columns"):
                guards.read_table(path)

    def test_finds_the_rules_that_tests_cite(self):
        text = "// As MR-2 to MR-4 say.\nTEST(A, ClosesMR16MR5) {\n  f(\"BF16\");\n}\n// MR-9\nint x;\n"
        known = {f"MR-{n}" for n in range(1, 20)}
        self.assertEqual([guards.cited(test, known) for test in guards.tests_of(text)],
                         [{"MR-2", "MR-3", "MR-4", "MR-5", "MR-16"}])

    def test_reads_the_tables_of_the_slow_tools(self):
        self.assertEqual(guards.coverage_rows("| **optimized/** | 9 of 10 | 90.0 % | 3 of 4 | 75.0 % |\n"),
                         {"coverage optimized": "lines 90.0, branches 75.0"})
        self.assertEqual(guards.mutation_rows("| all | 300 | 271 | 90.3 % |\n"),
                         {"mutation optimized": "score 90.3"})


# Writes the result of its command, and what it was started with.
STAND_IN = """#!{python}
import json, pathlib, sys
words, results = sys.argv[1:], json.loads({results!r})
out = pathlib.Path(words[words.index("--json") + 1])
out.write_text(json.dumps(results[words[0]]))
with open(__file__ + ".started", "a") as file:
    print(*words[:words.index("--json")], file=file)
sys.exit(results["status"] if words[0] != "list" else 0)
"""


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def command(self, status=0, **results):
        path = self.folder / "kvoracle"
        path.write_text(STAND_IN.format(python=sys.executable, results=json.dumps({"status": status, **results})))
        path.chmod(0o755)
        return guards.Command(str(path), 2)

    def started(self):
        return (self.folder / "kvoracle.started").read_text()

    def log(self, contract):
        path = self.folder / f"{contract}.jsonl.gz"
        with gzip.open(path, "wt") as file:
            file.write(json.dumps({"kvlog": 1, "contract": contract, "cache": "a"}, separators=(",", ":")) + "\n")
        return path

    def test_logs_of_a_contract_without_code_are_absent(self):
        command = self.command(list={"caches": [{"name": "known.a"}]})
        self.assertEqual(command.conform("logs", [self.log("other")], ["x/hand.gz"]),
                         {f"{profile} logs x/hand.gz": "absent: other" for profile in guards.PROFILES})

    def test_logs_show_mismatches_of_all_subjects_and_quirks_that_explain(self):
        subject = {"mismatches": 1, "broken": 0, "died": 0, "not_supported": 2}
        command = self.command(status=1, list={"caches": [{"name": "known.a"}]}, conform={
            "cases": 9, "subjects": [subject, subject],
            "quirks": [{"rule": "PX-48", "quirk": "aborts", "cases": 3}]})
        self.assertEqual(command.conform("logs", [self.log("known")], ["k"])["documented logs k"],
                         "cases 9, mismatches 2, broken 0, died 0, unsupported 4, PX-48 aborts 3")

    def test_a_mutant_has_the_judges_that_catch_it(self):
        command = self.command(mutants={"judgements": [
            {"mutant": "m", "profile": "original", "judge": "lockstep", "caught_by": "agrees_with_reference"},
            {"mutant": "m", "profile": "original", "judge": "law"},
            {"mutant": "m", "profile": "original", "judge": "recorded", "caught_by": "died"},
            {"mutant": "m", "profile": "documented", "judge": "law", "caught_by": None}]})
        self.assertEqual(command.mutants(), {"mutant m original": "lockstep, recorded", "mutant m documented": "-"})
        self.assertIn(" --logs " + " ".join(map(str, guards.embedded_logs())), self.started())

    def test_a_command_that_fails_is_named(self):
        with self.assertRaisesRegex(guards.BadInput, "kvoracle mutants .*status 4"):
            self.command(status=4, mutants={}).mutants()

    def run_main(self, rows, old, *words):
        file = self.folder / "guards.tsv"
        guards.write_table(file, old)
        out = io.StringIO()
        with mock.patch.multiple(guards, FILE=file, RENAMED=self.folder / "renamed.tsv",
                                 OF_MACHINE=self.folder / "machine.tsv", quick_rows=lambda command, steps: dict(rows)), \
                mock.patch.object(sys, "argv", ["guards", "--program", "none", *words]), \
                contextlib.redirect_stdout(out):
            try:
                guards.main()
                status = 0
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), guards.read_table(file)

    def test_check_has_status_1_only_where_a_row_is_worse(self):
        old = {"law a": "x, y", "law c": "x"}
        self.assertEqual(self.run_main({"law a": "x", "law b": "x", "law c": "x, z"}, old, "--check"),
                         (1, "worse: law a: was x, y, is x\nbetter: law c: was x, is x, z\nnew: law b: x\n"
                             "3 rows: 1 worse, 1 better, 1 new\n", old))
        self.assertEqual(self.run_main({"law a": "x, y", "law b": "x", "law c": "x"}, old, "--check")[0], 0)

    def test_write_replaces_the_computed_kinds_only(self):
        self.assertEqual(self.run_main({"law b": "x"}, {"law a": "x", "rule a": "test 1"}, "--write"),
                         (0, "", {"law b": "x", "rule a": "test 1"}))

    def test_only_some_steps_are_computed(self):
        with contextlib.redirect_stderr(io.StringIO()):
            found = guards.quick_rows(self.command(mutants={"judgements": []}), ["recorded", "mutants"])
        self.assertEqual({name.split()[0] for name in found}, {"recorded"})
        self.assertTrue(self.started().startswith("mutants --judges"))
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as complaint:
            with mock.patch.object(sys, "argv", ["guards", "--only", "rule"]):
                guards.main()
        self.assertIn("invalid choice: 'rule' (choose from 'rules'", complaint.getvalue())

    def test_medians_of_this_machine_are_not_written_to_the_committed_file(self):
        self.assertEqual(self.run_main({"bench b": "2.0", "law b": "x"}, {}, "--write")[2], {"law b": "x"})
        self.assertEqual(guards.read_table(self.folder / "machine.tsv"), {"bench b": "2.0"})
        self.assertEqual(self.run_main({"bench b": "2.2", "law b": "x"}, {"law b": "x"}, "--check")[:2],
                         (1, "worse: bench b: was 2.0, is 2.2\n2 rows: 1 worse, 0 better, 0 new\n"))


if __name__ == "__main__":
    unittest.main()
