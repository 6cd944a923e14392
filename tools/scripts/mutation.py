"""tools/scripts/mutation.py: places of a C++ source that can be changed, and copies that hold all changes.

A copy reads `::kvo_mutant::is(n)` wherever mutant n differs, so that all mutants of a source are
compiled once (mutant schemata: Untch, Offutt, Harrold, 1993). A change is made inside a unit: a
condition, the value of a declaration or a return, an expression that is a statement. Each mutant of
a unit is the whole unit written once more, on a line of its own, by which a compiler's complaint
finds it. Not a parser: it knows the code as clang-format writes it, and what it does not understand
(member initialisers, constant expressions, initialisers in braces) it leaves alone.
"""
import re

TOKEN = re.compile(r"""
    (?P<space>\s+ | //[^\n]* | /\*.*?\*/ | \#(?:\\\n|[^\n])*)
  | (?P<text>"(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*')
  | (?P<number>(?:0x[0-9A-Fa-f.']+(?:p[+-]?\d+)? | \d[\d'.]*(?:e[+-]?\d+)?)[uUlLzZfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><=>|->\*|\.\.\.|<<=|>>=|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)
# Functions that check the cache itself, or put guards behind its rows, are no behaviour, and a
# constant asks no switch.
UNCHANGED = {"broken_invariant", "broken", "consistent", "guard_cells", "put_guard", "guard_holds",
             "constexpr"}
# Statements that only ask for memory ahead, give some back, or tell a sanitizer: no behaviour either.
MEMORY_ONLY = {"reserve", "shrink_to_fit", "make_room", "poison", "unpoison", "madvise"}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


class Token:
    def __init__(self, match, spaced):
        self.kind, self.text = match.lastgroup, match.group()
        self.begin, self.end = match.span()
        self.spaced = spaced  # white space before it


def tokens_of(source):
    found, spaced = [], True
    for match in TOKEN.finditer(source):
        if match.lastgroup == "space":
            spaced = True
        else:
            found.append(Token(match, spaced))
            spaced = False
    return found


def partners(tokens):
    """Index of the closing bracket of each opening one."""
    pairs, stack = {}, []
    for i, token in enumerate(tokens):
        if token.kind == "sign" and token.text in OPEN:
            stack.append(i)
        elif token.kind == "sign" and token.text in CLOSE:
            pairs[stack.pop()] = i
    return pairs


class Unit:
    """Tokens [first, last) that are changed as a whole; `kind`: condition, step, value, return,
    statement."""

    def __init__(self, kind, first, last):
        self.kind, self.first, self.last = kind, first, last


class Reader:
    """Finds the units of a source."""

    def __init__(self, source):
        self.source = source
        self.tokens = tokens_of(source)
        self.pairs = partners(self.tokens)
        self.units = []
        self.outside(0, len(self.tokens))

    def text(self, i):
        return self.tokens[i].text if i < len(self.tokens) else ""

    def opens_block(self, i):
        """Whether the brace begins statements, not an initialiser."""
        before = self.text(i - 1) if i else ""
        return self.tokens[i].spaced and before not in ("=", "return", ",", "(", "?", ":")

    def outside(self, i, end):
        """Namespaces and classes: looks for the bodies of functions."""
        start = i
        while i < end:
            text = self.text(i)
            if text in (";", "}"):
                start = i + 1
            elif text in ("(", "["):
                i = self.pairs[i]
            elif text == "{":
                chunk = [self.text(j) for j in range(start, i)]
                if chunk[:1] == ["template"]:
                    chunk = chunk[self.end_of_angles(start + 1) - start:]
                close = self.pairs[i]
                if "namespace" in chunk or ({"class", "struct"} & set(chunk) and "(" not in chunk):
                    self.outside(i + 1, close)
                elif "(" in chunk and self.opens_block(i):
                    if not UNCHANGED & set(chunk):
                        self.block(i + 1, close)
                    start = close + 1
                i = close
                if "(" not in chunk:
                    start = close + 1
            i += 1

    def end_of_angles(self, i):
        """Behind the `>` of a `<`."""
        depth = 0
        while i < len(self.tokens):
            depth += {"<": 1, "<<": 2, ">": -1, ">>": -2}.get(self.text(i), 0)
            i += 1
            if depth <= 0:
                return i
        return i

    def block(self, i, end):
        while i < end:
            i = self.statement(i, end)

    def statement(self, i, end):
        """Reads one; gives where the next begins."""
        text = self.text(i)
        if text == "{":
            self.block(i + 1, self.pairs[i])
            return self.pairs[i] + 1
        if text in ("if", "while", "switch"):
            return self.conditional(i, end)
        if text == "for":
            return self.loop(i, end)
        if text == "else":
            return self.statement(i + 1, end)
        if text == "do":
            i = self.statement(i + 1, end)
            self.condition(i + 2, self.pairs[i + 1])
            return self.pairs[i + 1] + 2
        if text in ("case", "default"):
            while self.text(i) != ":":
                i += 1
            return i + 1
        if text == "try":
            return self.statement(i + 1, end)
        if text == "catch":
            return self.statement(self.pairs[i + 1] + 1, end)
        return self.simple(i, end)

    def conditional(self, i, end):
        fixed = self.text(i + 1) == "constexpr"
        first = i + (2 if fixed else 1)
        close = self.pairs[first]
        begin = first + 1
        for j in self.flat(begin, close):
            if self.text(j) == ";":
                begin = j + 1
        if not fixed and self.text(i) != "switch":
            self.condition(begin, close)
        i = self.statement(close + 1, end)
        return self.statement(i, end) if self.text(i) == "else" else i

    def loop(self, i, end):
        close = self.pairs[i + 1]
        ends = [j for j in self.flat(i + 2, close) if self.text(j) == ";"]
        if len(ends) == 2:
            self.condition(ends[0] + 1, ends[1])
            self.add("step", ends[1] + 1, close)
        return self.statement(close + 1, end)

    def flat(self, i, end):
        """Indices of tokens outside of brackets."""
        while i < end:
            yield i
            i = self.pairs.get(i, i) + 1

    def condition(self, first, last):
        if first < last and not self.declares(first, last):
            self.add("condition", first, last)

    def add(self, kind, first, last):
        if first < last:
            self.units.append(Unit(kind, first, last))
            self.lambdas(first, last)

    def lambdas(self, i, end):
        """Statements of lambdas inside an expression."""
        while i < end:
            if self.text(i) == "{" and self.opens_block(i):
                self.block(i + 1, self.pairs[i])
                i = self.pairs[i]
            i += 1

    def simple(self, i, end):
        last = i
        for last in self.flat(i, end):
            if self.text(last) == ";":
                break
        else:
            return end
        text = self.text(i)
        if text == "return":
            if i + 1 < last:
                self.add("return", i, last + 1)
        elif text in ("break", "continue"):
            self.add("statement", i, last + 1)
        elif text in ("static", "constexpr", "using", "static_assert", "struct", "class", "enum",
                      "throw", "goto", "typedef", "KVO_CHECK"):
            pass
        elif self.declares(i, last):
            self.declaration(i, last)
        elif not self.is_memory_only(i, last):
            self.add("statement", i, last + 1)
        return last + 1

    def is_memory_only(self, i, last):
        """Whether the statement is one call of such a function, whatever it is a member of."""
        calls = [j for j in self.flat(i, last) if self.text(j) == "("]
        if not calls or self.pairs[calls[-1]] != last - 1:
            return False
        name = self.text(calls[-1] - 1)
        # Room that a cache makes itself, for something, is behaviour.
        several = any(self.text(j) == "," for j in self.flat(calls[-1] + 1, last - 1))
        return name in MEMORY_ONLY and not (name == "reserve" and several)

    def declaration(self, i, last):
        flat = list(self.flat(i, last))
        equal = next((j for j in flat if self.text(j) == "="), None)
        if equal is None:
            self.lambdas(i, last)
            return
        commas = any(self.text(j) == "," for j in flat if j > equal)
        if commas or self.text(equal + 1) in ("{", "["):
            self.lambdas(i, last)
            return
        self.add("value", equal + 1, last)

    def declares(self, i, last):
        """Whether a declaration begins here: `type name`, by how names follow one another."""
        if self.text(i) in ("auto", "const", "unsigned", "signed", "long", "static"):
            return True
        while i < last and self.tokens[i].kind == "name":
            i += 1
            if self.text(i) == "<" and not self.tokens[i].spaced:
                i = self.end_of_angles(i)
            if self.text(i) != "::":
                break
            i += 1
        while self.text(i) in ("&", "*", "&&") and not self.tokens[i].spaced:
            i += 1
        return i < last and self.tokens[i].kind == "name" and self.tokens[i].spaced


# Calls that mean the same with their arguments swapped.
SYMMETRIC = {"min", "max", "swap", "equal", "__builtin_add_overflow", "__builtin_mul_overflow"}
SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
           "*": "+", "/": "*", "%": "*", "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "++": "--",
           "--": "++", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
WORDS = {"true": "false", "false": "true", "min": "max", "max": "min", "begin": "end",
         "front": "back", "back": "front"}


class Mutant:
    """Unit `unit` with the characters [begin, end) of the source replaced."""

    def __init__(self, unit, begin, end, to, what):
        self.unit, self.begin, self.end, self.to, self.what = unit, begin, end, to, what
        self.number = 0


def replaced(unit, token, to, what="operator"):
    return Mutant(unit, token.begin, token.end, to, what)


def of_token(reader, unit, i):
    """The mutants of one token."""
    token = reader.tokens[i]
    text, found = token.text, []
    binary = token.spaced and i + 1 < unit.last and reader.tokens[i + 1].spaced
    after_template = text in ("<", ">", ">>", "*", "&") and not binary
    if token.kind == "sign" and text in SWAPPED and not after_template:
        if binary or text in ("++", "--"):
            found.append(replaced(unit, token, SWAPPED[text]))
        if binary and text in ("<", "<=", ">", ">=", "==", "!=", "+"):
            found.append(Mutant(unit, token.end, token.end, " 1 +", "off by one"))
    elif token.kind == "sign" and text == "!":
        found.append(replaced(unit, token, ""))
    elif token.kind == "number" and re.fullmatch(r"\d+[uU]?", text):
        found.append(replaced(unit, token, f"({text} + 1)", "off by one"))
        if text.rstrip("uU") != "0":
            found.append(replaced(unit, token, f"({text} - 1)", "off by one"))
    elif token.kind == "name" and text in WORDS:
        found.append(replaced(unit, token, WORDS[text], "word"))
    elif text == "(" and reader.tokens[i - 1].kind == "name" and not token.spaced:
        found += swapped_arguments(reader, unit, i)
    return found


def swapped_arguments(reader, unit, i):
    close = reader.pairs[i]
    commas = [j for j in reader.flat(i + 1, close) if reader.text(j) == ","]
    if len(commas) not in (1, 2) or reader.text(i - 1) in SYMMETRIC:
        return []
    begin = reader.tokens[i + 1].begin
    middle = reader.tokens[commas[0]]
    end = reader.tokens[commas[1] if len(commas) == 2 else close]
    first = reader.source[begin:middle.begin].strip()
    second = reader.source[middle.end:end.begin].strip()
    if first == second or "//" in first + second:
        return []
    return [Mutant(unit, begin, end.begin, f"{second}, {first}", "swapped arguments")]


def mutants_of(reader):
    """Lists of mutants, a list a place."""
    inner = {}  # token -> innermost unit
    for unit in reader.units:
        for i in range(unit.first, unit.last):
            old = inner.get(i)
            if old is None or unit.last - unit.first < old.last - old.first:
                inner[i] = unit
    places = []
    for unit in reader.units:
        begin, end = reader.tokens[unit.first].begin, reader.tokens[unit.last - 1].end
        if unit.kind == "statement":
            places.append([Mutant(unit, begin, end, "", "left out")])
        if unit.kind == "condition":
            places.append([Mutant(unit, begin, end, word, "condition") for word in
                           ("true", "false")])
    for i, unit in inner.items():
        found = of_token(reader, unit, i)
        if found:
            places.append(found)
    return places


class Copy:
    """The source with some of its mutants in it."""

    def __init__(self, reader, mutants):
        self.reader = reader
        self.of_unit = {}
        for mutant in mutants:
            self.of_unit.setdefault(id(mutant.unit), []).append(mutant)
        self.units = sorted((u for u in reader.units if id(u) in self.of_unit),
                            key=lambda u: (u.first, -u.last))

    def text(self):
        return self.inside(0, len(self.reader.source), None)

    def span(self, unit):
        return self.reader.tokens[unit.first].begin, self.reader.tokens[unit.last - 1].end

    def inside(self, begin, end, outer):
        """Characters [begin, end) with the choices of the units in there, but for `outer`."""
        out, at = [], begin
        for unit in self.units:
            first, last = self.span(unit)
            if unit is outer or first < at or last > end:
                continue
            if outer is not None and first < begin:
                continue
            out += [self.reader.source[at:first], self.choice(unit)]
            at = last
        return "".join(out) + self.reader.source[at:end]

    def choice(self, unit):
        begin, end = self.span(unit)
        sound = self.inside(begin, end, unit)
        mutants = self.of_unit[id(unit)]
        source = self.reader.source
        changed = [" ".join((source[begin:m.begin] + m.to + source[m.end:end]).split("\n"))
                   for m in mutants]
        if "//" in "".join(changed):
            changed = [re.sub(r"//[^\n]*\n", "\n", source[begin:m.begin]) + m.to +
                       re.sub(r"//[^\n]*\n", "\n", source[m.end:end]) for m in mutants]
            changed = [" ".join(text.split("\n")) for text in changed]
        if unit.kind in ("statement", "return"):
            lines = [f"\nif ({asks(m)}) {{ {text} }} else /*M{m.number}*/\n"
                     for m, text in zip(mutants, changed)]
            return "{" + "".join(lines) + "{ " + sound + " } }"
        cast = {"condition": "static_cast<bool>", "step": "static_cast<void>"}.get(unit.kind, "")
        lines = [f"\n{asks(m)} ? {cast}({text}) : /*M{m.number}*/\n"
                 for m, text in zip(mutants, changed)]
        return "(" + "".join(lines) + f"{cast}({sound}))"


def asks(mutant):
    return f"::kvo_mutant::is({mutant.number})"
