#!/usr/bin/env python3
"""tools/tidy/tidy.py [--renew] [ROOT]: the rules of the tree that no compiler and no clang-tidy checks.

Prints `file:line: complaint` for each place that breaks a rule and ends with status 1 if there is one.
--renew lowers the limits of tools/tidy/words.md to what the tree has today.
"""
import collections
import functools
import pathlib
import re
import sys

ROOMS = ("reference", "optimized", "cuda", "traces", "properties", "tools", "examples")
COLUMNS, LINES = 100, 1000
WORDS = "tools/tidy/words.md"

# ---- Includes: the table of docs/architecture.md ----
# Every other folder of reference/ and properties/ is one contract's.
CONTRACT = r"reference/(?!contract/)[a-z0-9_]+/"
TESTED = r"[a-z0-9_/]+_(test|property)\.(cpp|cu)"
MACHINE = r"reference/contract/.*"
# A cache that must agree with the reference is not made of it: `<kind>_cache.hpp` is in none of these.
CACHE_HEADER = CONTRACT + (r"(cache|(?!([a-z0-9_]+_)?(cache|pool|operations|session|subjects|config)\.)"
                           r"[a-z0-9_]+)\.hpp")
CACHES = MACHINE + "|" + CACHE_HEADER
RECORDS = CONTRACT + r"([a-z0-9_]+_)?operations\.hpp"
SUBJECTS = CACHES + "|" + RECORDS
LAWS = MACHINE + "|traces/.*|properties/runner/.*"
CAMPAIGN = LAWS + "|properties/(replay|campaign)/.*"
# Including file, included file. The first row that fits the including file decides.
ARROWS = [(re.compile(including), re.compile(included)) for including, included in (
    (MACHINE, MACHINE),
    (CACHE_HEADER, SUBJECTS),  # a cache in one would be included in every directory
    (RECORDS, SUBJECTS),
    (r"reference/.*", r"reference/.*"),
    (r"optimized/(.*subjects.*|" + TESTED + ")", SUBJECTS + "|optimized/.*"),
    (r"optimized/.*", CACHES + "|optimized/.*"),
    (r"cuda/(.*subjects.*|" + TESTED + ")", SUBJECTS + "|cuda/.*|optimized/[a-z_]+/.*"),
    # What a cache decides is in optimized/<c>, for a device, too.
    *((f"cuda/{contract}/.*", CACHES + f"|cuda/.*|optimized/{contract}/.*")
      for contract in ("block_pool", "layered", "positional", "provider", "snapshot", "views")),
    (r"cuda/.*", CACHES + "|cuda/.*"),
    (r"traces/.*", MACHINE + "|traces/.*"),
    (r"properties/(runner|replay|campaign)/" + TESTED,
     r"reference/.*|traces/.*|properties/.*|(optimized|cuda)/subjects\.hpp"),
    (r"properties/runner/.*", LAWS),
    (r"properties/(replay|campaign)/.*", CAMPAIGN),
    (r"properties/[a-z0-9_]+/.*", r"(reference|traces|properties|optimized|cuda)/.*"),
    (r"properties/contracts\.cpp",
     r"(reference|traces|properties)/.*|(optimized|cuda)/(.*/)?[a-z0-9_]*subjects\.hpp|cuda/device/open\.hpp"),
    (r"properties/[^/]*", CAMPAIGN + r"|properties/[^/]*"),
    (r"(tools|examples)/.*", r".*"),
)]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)

# ---- Banned in code, or in code and comments ----
UNFINISHED = "finish it or leave it out"
BANNED = [(re.compile(pattern), reading, why) for pattern, reading, why in (
    (r"catch\s*\(\s*\.\.\.\s*\)", "bare", "swallows verdicts: name what is caught"),
    (r"\busing\s+namespace\b", "bare", "name what is used"),
    (r"\bstd\s*::\s*s?rand\b", "bare", "use a seeded engine"),
    (r"\bgetenv\b", "bare", "use an option"),
    (r"\bassert\s*\(", "bare", "use KVO_CHECK, which is on in every build"),
    (r"\b(FIXME|TODO|XXX)\b", "words", UNFINISHED),
)]
# Places that may break a rule: file, what the complaint contains, why.
EXCUSED = [
    ("reference/contract/subject/dispatch.cpp", "swallows verdicts", "what a subject throws is observed"),
    ("reference/contract/subject/dispatch.hpp", "swallows verdicts", "what a subject throws is observed"),
    ("tools/reports/console.cpp", "use an option", "NO_COLOR and TERM"),
    ("tools/testing/environment.hpp", "use an option", "CTest passes no options to a test"),
]

COMMENT = r"//[^\n]*|/\*.*?\*/"
# The quote of 1'000 begins no literal.
LITERAL = (r'R"(?P<raw>[^\s"()\\]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
           r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'")
TOKEN = re.compile(rf"(?P<comment>{COMMENT})|{LITERAL}", re.S)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


class Source:
    """A C++ file in three readings of equal length: as it is, and with parts blanked."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.bare = TOKEN.sub(self._without_comment, text)  # no comments, nothing inside literals
        self.words = TOKEN.sub(self._without_literal, text)  # nothing inside literals
        self.includes = [(match.start(1), match[1] == '"', match[2]) for match in INCLUDE.finditer(text)
                         if self.bare[match.start(1)] != " "]

    @staticmethod
    def _without_literal(match):
        text = match[0]
        return text if match["comment"] else text[0] + blank(text[1:-1]) + text[-1]

    @staticmethod
    def _without_comment(match):
        return blank(match[0]) if match["comment"] else Source._without_literal(match)

    def at(self, position, complaint):
        line = self.text.count("\n", 0, position) + 1
        return f"{self.path}:{line}: {complaint}"


class Tree:
    """The sources of the directories in ROOMS, and what their CMake files name."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.sources, self.builds = [], {"": self._words(self.root / "CMakeLists.txt")}
        for room in ROOMS:
            for path in sorted((self.root / room).rglob("*")):
                name = path.relative_to(self.root).as_posix()
                if path.suffix in (".hpp", ".cpp", ".cuh", ".cu"):
                    self.sources.append(Source(name, path.read_text(encoding="utf-8")))
                elif path.name == "CMakeLists.txt":
                    self.builds[name.removesuffix("CMakeLists.txt")] = self._words(path)

    @staticmethod
    def _words(path):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return set(re.split(r'[\s()"]+', re.sub(r"#.*|\$\{\w+\}/", "", text)))


def is_ours(path):
    return path.partition("/")[0] in ROOMS and "/" in path


def includes_against_the_table(tree):
    for source in tree.sources:
        allowed = next((to for including, to in ARROWS if including.fullmatch(source.path)), None)
        for position, _, path in source.includes:
            if is_ours(path) and not (allowed and allowed.fullmatch(path)):
                yield source.at(position, f"must not include {path}; docs/architecture.md has the table")


def includes_not_from_the_root(tree):
    for source in tree.sources:
        own_project = re.fullmatch(r"examples/[^/]+/.*", source.path)
        for position, quoted, path in source.includes:
            if re.search(r"(^|/)\.\.?/", path) or quoted != is_ours(path) and not (quoted and own_project):
                yield source.at(position, f'include ours as "reference/...", others in <>: {path}')


def json_in_cache_headers(tree):
    """The author of a cache includes these headers, and does not pay for JSON."""
    files = {source.path: source for source in tree.sources}

    def way(path, seen):
        if path.startswith("boost/json") and path != "boost/json/fwd.hpp":
            return path
        if path not in files or path in seen:
            return None
        seen.add(path)
        for _, _, included in files[path].includes:
            if rest := way(included, seen):
                return f"{path} > {rest}"
        return None

    for source in tree.sources:
        if re.fullmatch(CACHE_HEADER, source.path) and (through := way(source.path, set())):
            yield source.at(0, f"includes JSON: {through}")


FALLIBLE = re.compile(r"^ *(\[\[nodiscard\]\] )?virtual (kvo::)?(Status|Result)\b[^;{]*\)([^;{)]*)[;{]", re.M)
SCOPE = re.compile(r"^ *(?:class (?P<name>\w+)[^;]*?\{|(?P<section>public|protected|private):)", re.M)


def errors_without_words(tree):
    """Public virtuals of cache headers that change the cache name their errors: `Errors` in the comment
    before them or before their class."""
    def commented(source, position):
        above = source.text[:position].splitlines()
        while above and above[-1].lstrip().startswith(("//", "template")):
            if "Errors" in above.pop():
                return True
        return False

    for source in tree.sources:
        if not re.fullmatch(CACHE_HEADER, source.path):
            continue
        for match in FALLIBLE.finditer(source.bare):
            scopes = list(SCOPE.finditer(source.bare, 0, match.start()))
            named = [scope for scope in scopes if scope["name"]]
            public = scopes and scopes[-1]["section"] == "public"
            if public and "const" not in match[4].split() and not commented(source, match.start()) \
                    and not (named and commented(source, named[-1].start())):
                yield source.at(match.start(), "a virtual that may fail does not name its Errors")


def long_lines(tree):
    for source in tree.sources:
        for match in re.finditer(rf"^.{{{COLUMNS + 1},}}$", source.text, re.M):
            yield source.at(match.start(), f"{len(match[0])} columns, {COLUMNS} are allowed")


def long_files(tree):
    for source in tree.sources:
        lines = source.text.count("\n")
        if lines > LINES:
            yield f"{source.path}:{LINES}: {lines} lines, {LINES} are allowed"


BUILT_WITH_AN_ENGINE = ("tools/adapters/systems/", "findings/")


def sources_in_no_target(tree):
    for source in tree.sources:
        if source.path.startswith(BUILT_WITH_AN_ENGINE):
            continue
        named = any(source.path.startswith(folder) and source.path[len(folder):] in words
                    for folder, words in tree.builds.items())
        if source.path.endswith((".cpp", ".cu")) and not named:
            yield source.at(0, "in no CMakeLists.txt")


def banned(tree):
    for source in tree.sources:
        for pattern, reading, why in BANNED:
            for match in pattern.finditer(getattr(source, reading)):
                yield source.at(match.start(), f"banned, {why}")


# ---- Documents ----
def prose(text):
    """A page without its examples."""
    return re.sub(r"^```.*?^```[^\n]*$", "", text, flags=re.M | re.S)


@functools.lru_cache(None)
def anchors(page):
    headings = re.findall(r"^#+ (.*)$", prose(page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


def broken_links(tree):
    for folder in ("", "docs", "docs/rules"):
        for page in sorted((tree.root / folder).glob("*.md")):
            for path, name in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", prose(page.read_text("utf-8"))):
                target = page.parent / path if path else page
                if "://" not in path and (not target.exists() or name and name not in anchors(target)):
                    yield f"{page.relative_to(tree.root)}:1: a broken link: {path}{name and '#' + name}"


def unlinked_pages(tree):
    readme = prose((tree.root / "README.md").read_text("utf-8"))
    for page in sorted((tree.root / "docs").iterdir()):
        if f"](docs/{page.name})" not in readme:
            yield f"docs/{page.name}:1: README.md has no link to it"


# ---- Words that are to be replaced ----
def word_rows(tree):
    """The words of the table, what to write instead, and how often a directory may have each."""
    lines = (tree.root / WORDS).read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    rooms = cells[0][2:]
    return [(row[0], row[1], dict(zip(rooms, map(int, row[2:])))) for row in cells[2:]]


def word_counts(tree, words):
    """How often each directory has each word: (directory, word) -> number."""
    pattern = re.compile(r"(?<![a-z])(" + "|".join(word.replace(" ", "[ _]") for word in words) + ")(?![a-z])", re.I)
    pages = [("docs", page.read_text("utf-8")) for page in
             [*tree.root.glob("docs/**/*.md"), tree.root / "README.md", tree.root / "CONTRIBUTING.md"]]
    sources = [(source.path.partition("/")[0], source.text) for source in tree.sources]
    counts = collections.Counter()
    for room, text in pages + sources:
        counts.update((room, word.lower().replace("_", " ")) for word in pattern.findall(text))
    return counts


def more_words_than_before(tree):
    rows = word_rows(tree)
    counts = word_counts(tree, [row[0] for row in rows])
    for word, instead, limits in rows:
        for room, limit in limits.items():
            if counts[room, word] > limit:
                yield f"{room}/:1: '{word}' {counts[room, word]} times, {limit} are allowed: write {instead}"


def renew(tree):
    page = tree.root / WORDS
    rows = word_rows(tree)
    counts = word_counts(tree, [row[0] for row in rows])
    head = page.read_text("utf-8").split("\n|")[0]
    rooms = list(rows[0][2])
    lines = ["word | instead | " + " | ".join(rooms), "--- | --- |" + " ---: |" * (len(rooms) - 1) + " ---:"]
    for word, instead, limits in rows:
        lower = [str(min(limits[room], counts[room, word])) for room in rooms]
        lines.append(" | ".join([word, instead, *lower]))
    page.write_text(head + "".join(f"\n| {line} |" for line in lines) + "\n", "utf-8")


RULES = [includes_against_the_table, includes_not_from_the_root, json_in_cache_headers, errors_without_words,
         long_lines, long_files, sources_in_no_target, banned, broken_links, unlinked_pages,
         more_words_than_before]


def complaints(tree, excused):
    """What breaks a rule and is not excused, and which excuses nothing needs."""
    found = [complaint for rule in RULES for complaint in rule(tree)]

    def fits(row, complaint):
        return complaint.startswith(row[0] + ":") and row[1] in complaint

    left = [text for text in found if not any(fits(row, text) for row in excused)]
    return left + [f"tools/tidy/tidy.py:1: nothing breaks '{row[1]}' in {row[0]}: delete the row of EXCUSED"
                   for row in excused if not any(fits(row, text) for text in found)]


def main(words):
    if [word for word in words if word.startswith("-")] not in ([], ["--renew"]) or len(words) > 2:
        sys.exit("usage: tidy.py [--renew] [ROOT]")
    roots = [word for word in words if not word.startswith("-")]
    tree = Tree(roots[0] if roots else pathlib.Path(__file__).resolve().parents[2])
    if not any(source.path == "tools/main.cpp" for source in tree.sources):
        sys.exit(f"tidy.py: {tree.root} is not the tree: it has no tools/main.cpp")
    if "--renew" in words:
        renew(tree)
    found = complaints(tree, EXCUSED)
    print("\n".join(found), end="\n" * bool(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
