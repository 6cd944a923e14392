#!/usr/bin/env python3
"""tools/tidy/tidy_test.py: what the rules of tidy.py refuse and allow."""
import pathlib
import tempfile
import unittest

import tidy

HEAD = ("| word | instead | cuda | docs |\n| --- | --- | ---: | ---: |\n")


def write(root, files):
    for name, text in files.items():
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def found(rule, files, build=""):
    """The complaints of a rule about a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        write(root, {"README.md": "", "CONTRIBUTING.md": "", "docs/a.md": "", "CMakeLists.txt": build, **files})
        return list(rule(tidy.Tree(root)))


class Rules(unittest.TestCase):
    def refuses(self, rule, files, *beginnings, build=""):
        complaints = found(rule, files, build)
        self.assertEqual(len(complaints), len(beginnings), (files, complaints))
        for complaint, beginning in zip(complaints, beginnings):
            self.assertTrue(complaint.startswith(beginning), (complaint, beginning))

    def test_includes_against_the_table(self):
        for path, included in (
                ("reference/views/paged_cache.cpp", "traces/reader.hpp"),
                ("reference/contract/result.hpp", "reference/views/paged.hpp"),
                ("reference/contract/subject/subject.cpp", "reference/subjects.hpp"),
                ("reference/views/cache.hpp", "reference/views/paged_cache.hpp"),
                ("reference/views/operations.hpp", "reference/views/session.hpp"),
                ("optimized/views/paged_cache.cpp", "reference/views/paged_cache.hpp"),
                ("optimized/views/paged_cache.cpp", "reference/views/paged_operations.hpp"),
                ("optimized/views/subjects.cpp", "reference/views/paged_cache.hpp"),
                ("optimized/views/paged_cache.cpp", "cuda/device/stream.hpp"),
                ("cuda/views/paged_cache.cu", "optimized/layered/control.hpp"),
                ("cuda/jobs/rows.hpp", "optimized/views/paged_cache.hpp"),
                ("cuda/views/paged_test.cpp", "reference/subjects.hpp"),
                ("traces/log/log.cpp", "reference/views/cache.hpp"),
                ("traces/log/log.cpp", "properties/runner/lockstep.hpp"),
                ("properties/runner/lockstep.cpp", "reference/views/cache.hpp"),
                ("properties/runner/lockstep.cpp", "properties/views/oracle.hpp"),
                ("properties/runner/lockstep.cpp", "properties/replay/schedule.hpp"),
                ("properties/runner/lockstep.cpp", "optimized/views/paged_cache.hpp"),
                ("properties/runner/lockstep.cpp", "tools/report.hpp"),
                ("properties/replay/schedule.cpp", "cuda/views/paged_cache.hpp"),
                ("properties/campaign/law.cpp", "properties/views/oracle.hpp"),
                ("properties/campaign/law.cpp", "properties/contracts.hpp"),
                ("properties/contracts.hpp", "reference/views/cache.hpp")):
            self.refuses(tidy.includes_against_the_table, {path: f'#pragma once\n#include "{included}"\n'},
                         f"{path}:2: must not include {included}")
        self.refuses(tidy.includes_against_the_table,
                     {"optimized/a.cpp": "#include <reference/views/paged_cache.hpp>\n"}, "optimized/a.cpp:1: ")

    def test_includes_along_the_table(self):
        for path, included in (
                ("reference/views/paged_cache.cpp", "reference/views/paged_cache.hpp"),
                ("reference/views/cache.hpp", "reference/contract/values/result.hpp"),
                ("reference/views/paged.hpp", "reference/views/cache.hpp"),
                ("reference/views/paged_operations.hpp", "reference/views/operations.hpp"),
                ("optimized/views/paged_cache.cpp", "reference/contract/values/result.hpp"),
                ("optimized/views/paged_cache.hpp", "reference/block_pool/cache.hpp"),
                ("optimized/views/paged_cache.hpp", "reference/views/paged.hpp"),
                ("optimized/views/paged_cache.cpp", "reference/views/quirks.hpp"),
                ("optimized/views/subjects.cpp", "reference/views/operations.hpp"),
                ("cuda/views/paged_cache.cu", "optimized/views/paged_cache.hpp"),
                ("cuda/views/paged_cache.cu", "cuda/device/stream.hpp"),
                ("traces/log/log.cpp", "reference/contract/describe/json.hpp"),
                ("properties/runner/lockstep_test.cpp", "reference/views/paged_cache.hpp"),
                ("properties/replay/schedule.cpp", "properties/runner/lockstep.hpp"),
                ("properties/views/mutants.cpp", "optimized/views/paged_cache.hpp"),
                ("properties/views/oracle.cpp", "properties/campaign/law.hpp"),
                ("properties/contracts.cpp", "properties/views/oracle.hpp"),
                ("properties/contracts.cpp", "optimized/subjects.hpp"),
                ("tools/main.cpp", "optimized/views/paged_cache.hpp")):
            self.refuses(tidy.includes_against_the_table, {path: f'#include "{included}"\n'})

    def test_includes_are_from_the_root(self):
        for bad in ('"ring.hpp"', '"../traces/log.hpp"', '"traces/../tools/a.hpp"', '"./traces/log.hpp"',
                    '"fmt/core.h"', "<traces/log.hpp>", "<../traces/log.hpp>"):
            self.refuses(tidy.includes_not_from_the_root, {"traces/a.cpp": f"\n#include {bad}\n"}, "traces/a.cpp:2: ")
        self.refuses(tidy.includes_not_from_the_root,
                     {"traces/a.cpp": '#include <fmt/core.h>\n#include "traces/a.hpp"\n// #include "b"\n',
                      "examples/own/a.cpp": '#include "ring.hpp"\n'})
        for bad in ("<traces/log.hpp>", '"../ring.hpp"'):
            self.refuses(tidy.includes_not_from_the_root, {"examples/own/a.cpp": f"#include {bad}\n"}, "examples/")

    def test_cache_headers_include_no_json(self):
        include = {"reference/contract/describe.hpp": "<boost/json/value.hpp>",
                   "reference/contract/values.hpp": "<boost/json/fwd.hpp>",
                   "reference/views/cache.hpp": '"reference/views/paged.hpp"',
                   "reference/views/operations.hpp": '"reference/contract/describe.hpp"',
                   "reference/views/paged.hpp": '"reference/contract/describe.hpp"',
                   "reference/views/ring.hpp": '"reference/contract/values.hpp"',
                   "reference/a/cache.hpp": '"reference/a/b.hpp"', "reference/a/b.hpp": '"reference/a/cache.hpp"'}
        self.refuses(tidy.json_in_cache_headers, {name: f"#include {text}\n" for name, text in include.items()},
                     "reference/views/cache.hpp:1: includes JSON: reference/views/cache.hpp > "
                     "reference/views/paged.hpp > reference/contract/describe.hpp > boost/json/value.hpp",
                     "reference/views/paged.hpp:1: includes JSON")

    def test_virtuals_name_their_errors(self):
        member = "  /// Cuts.\n  [[nodiscard]] virtual Status cut(\n      int n) = 0;\n"
        for comment, text, section, bad in (
                ("", member, "public", True),
                ("/// A cache.\n", "  virtual Result<int> cut() = 0;\n", "public", True),
                ("/// A cache. Errors change nothing.\n", member, "public", False),
                ("", "  /// Errors  kFull.\n  virtual Status cut() = 0;\n", "public", False),
                ("", "  virtual Result<int> size() const = 0;\n", "public", False),
                ("", "  virtual void clear() = 0;\n", "public", False),
                ("", member, "private", False)):
            self.refuses(tidy.errors_without_words,
                         {"reference/views/cache.hpp": f"{comment}class Cache {{\n {section}:\n{text}}};\n"},
                         *["reference/views/cache.hpp:"] * bad)

    def test_lines_and_files_have_limits(self):
        self.refuses(tidy.long_lines, {"cuda/a.cpp": "\n" + "x" * 101}, "cuda/a.cpp:2: 101 columns")
        self.refuses(tidy.long_lines, {"cuda/a.cpp": "x" * 100 + "\n" + "x" * 99 + "\u00e9"})
        self.refuses(tidy.long_files, {"cuda/a.cpp": "\n" * 1001}, "cuda/a.cpp:1000: 1001 lines")
        self.refuses(tidy.long_files, {"cuda/a.cpp": "\n" * 1000})

    def test_every_source_is_in_a_target(self):
        for folder, text, bad in (
                ("cuda/", "kvo_library(a SOURCES ring.cpp)", True),
                ("cuda/pool/", "kvo_library(a SOURCES string.cpp)", True),
                ("cuda/pool/", "kvo_library(a SOURCES # ring.cpp\n)", True),
                ("traces/", "kvo_library(a SOURCES ring.cpp)", True),
                ("cuda/pool/", "kvo_library(a SOURCES ring.cpp)", False),
                ("cuda/", "kvo_library(a SOURCES\n  pool/ring.cpp\n)", False),
                ("cuda/", 'f("${CMAKE_CURRENT_SOURCE_DIR}/pool/ring.cpp")', False)):
            self.refuses(tidy.sources_in_no_target, {"cuda/pool/ring.cpp": "", folder + "CMakeLists.txt": text},
                         *["cuda/pool/ring.cpp:1: in no CMakeLists.txt"] * bad)
        self.refuses(tidy.sources_in_no_target, {"cuda/a.cpp": ""}, build="add_library(a cuda/a.cpp)")

    def test_banned_in_code(self):
        for bad in ("try {} catch (...) {}", "using namespace std;", "std::rand();", 'getenv("A");', "assert(a);",
                    "int i = 1'000; assert (a);", "char c = '\"'; assert(a);", 'f(R"x(")x"); assert(a);',
                    "/* a */ assert(a); // b", "// TODO: a", "/* FIXME */", "int XXX;"):
            self.refuses(tidy.banned, {"tools/a.cpp": "\n" + bad}, "tools/a.cpp:2: banned, ")
        for good in ("// not by catch (...) nor assert(a)", "/* using\n namespace getenv */", 'f("assert(a)");',
                     'f(R"x(assert(")"a)x");', "static_assert(true);", 'f("\\"assert(a)");', "namespace kvo {}",
                     'f("XXX");', "mkstemp(kXXXXXX);"):
            self.refuses(tidy.banned, {"tools/a.cpp": good})

    def test_links_lead_somewhere(self):
        page = ("# A page\n[1](b.md) [2](#a-page) [3](https://x.y/z)\n[4](b.md#a_b-px-1-px-2)\n```\n[5](no.md)\n```\n"
                "[6](no.md) [7](b.md#no) [8](#no)\n")
        self.refuses(tidy.broken_links, {"docs/a.md": page, "docs/b.md": "# Other\n## `a_b` (PX-1, PX-2)\n"},
                     *[f"docs/a.md:1: a broken link: {link}" for link in ("no.md", "b.md#no", "#no")])
        self.refuses(tidy.unlinked_pages, {"README.md": "[A](docs/a.md)\n```\n(docs/b.md)\n```\n", "docs/b.md": ""},
                     "docs/b.md:1: ")

    def test_words_do_not_become_more(self):
        files = {tidy.WORDS: HEAD + "| let go | released | 1 | 0 |\n| saw | result | 0 | 1 |\n",
                 "cuda/a.cpp": "// Let go.\nint let_go = outlet_goes;\n", "docs/a.md": "saw sawn\n"}
        self.refuses(tidy.more_words_than_before, files, "cuda/:1: 'let go' 2 times, 1 are allowed: write released")

    def test_renewed_limits_are_lower_only(self):
        with tempfile.TemporaryDirectory() as root:
            write(root, {tidy.WORDS: "# Head\n\n" + HEAD + "| saw | result | 5 | 0 |\n",
                         "cuda/a.cpp": "// saw", "docs/a.md": "saw", "README.md": "", "CONTRIBUTING.md": ""})
            tidy.renew(tidy.Tree(root))
            self.assertEqual(pathlib.Path(root, tidy.WORDS).read_text("utf-8"),
                             "# Head\n\n" + HEAD + "| saw | result | 1 | 0 |\n")

    def test_excuses(self):
        with tempfile.TemporaryDirectory() as root:
            write(root, {"README.md": "[](docs/a.md)", "docs/a.md": "", "CONTRIBUTING.md": "", tidy.WORDS: HEAD +
                         "| saw | result | 0 | 0 |\n", "tools/a.cpp": "getenv(); assert(a);",
                         "tools/CMakeLists.txt": "f(a.cpp)"})
            rows = [("tools/a.cpp", "use an option", ""), ("tools/b.cpp", "use an option", "")]
            left = tidy.complaints(tidy.Tree(root), rows)
        self.assertEqual([text.split(",")[0] for text in left],
                         ["tools/a.cpp:1: banned", "tools/tidy/tidy.py:1: nothing breaks 'use an option' in tools/b.cpp: "
                          "delete the row of EXCUSED"])


if __name__ == "__main__":
    unittest.main()
