#!/usr/bin/env python3
"""tools/testing/transcript.py [--update] KVORACLE FILE..: runs the commands of transcripts and compares what
they print. A transcript has lines of these kinds:

  # TITLE     a case: its commands run in turn, in an empty folder of its own
  $ COMMAND   for bash; lines that begin with `> ` continue it; standard error goes to standard output
  ? 2         the exit status of the command, unless 0
  TEXT        a line of its output; `...` stands for any text, and on a line of its own for any lines
  % CODE      shell code before each command of the file

`kvoracle` is KVORACLE, $ROOT this tree and $LOGS its recorded logs. `json EXPRESSION..` prints values of the
JSON `j` on standard input. --update writes what commands print in the place of what does not fit; read it
before you commit it. Ends with status 1 if something does not fit.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRELUDE = 'json() { "$PYTHON" "$ROOT/tools/testing/transcript.py" --json "$@"; }\n'
LIMIT_SECONDS = 300
PROGRESS = re.compile(r"^\w+ \[[#.]+\] .*\n", re.M)  # of long commands: whether it is printed depends on the machine


class Step:
    """A command with its status and output. Line numbers count from 0."""

    def __init__(self, number, command):
        self.number, self.command, self.status, self.text = number, command, 0, []
        self.end = number + 1


class Case:
    def __init__(self, title):
        self.title, self.steps = title, []


def parse(name, lines):
    """The shell code and the cases of a transcript."""
    code, cases = [], []
    for number, line in enumerate(lines):
        steps = cases[-1].steps if cases else []
        if line.startswith("% "):
            code.append(line[2:])
            continue
        if line.startswith("# "):
            cases.append(Case(line[2:]))
            continue
        if line.startswith("$ ") and cases:
            steps.append(Step(number, line[2:]))
        elif line.startswith("> ") and steps and not steps[-1].text:
            steps[-1].command += "\n" + line[2:]
        elif re.fullmatch(r"\? -?\d+", line) and steps and not steps[-1].text:
            steps[-1].status = int(line[2:])
        elif steps:
            steps[-1].text.append(line)
        elif line:
            raise SystemExit(f"{name}:{number + 1}: '{line}' is before the first command")
        if steps and line:
            steps[-1].end = number + 1
    for case in cases:
        if not case.steps:
            raise SystemExit(f"{name}: case '{case.title}' has no command")
        for step in case.steps:
            while step.text and not step.text[-1]:
                step.text.pop()
    return "\n".join(code), cases


def pattern_of(text):
    """What an output of these lines looks like."""
    parts = [r"(?:[^\n]*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", r"[^\n]*") + r"\n"
             for line in text]
    return "".join(parts) + r"\n*"


def misfit(step, status, output):
    """What does not fit, or nothing."""
    if status != step.status:
        return f"status {status}, expected {step.status}"
    if re.fullmatch(pattern_of(step.text), output):
        return None
    for count in range(len(step.text), -1, -1):
        if re.match(pattern_of(step.text[:count] + ["..."]), output) if count < len(step.text) else None:
            return f"no such line in its place: {step.text[count]}"
    return "more output than expected"


def run(command, code, folder, kvoracle):
    environment = dict(os.environ, ROOT=str(ROOT), LOGS=str(ROOT / "traces/logs"), PYTHON=sys.executable,
                       PATH=f"{kvoracle.parent}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
    done = subprocess.run(["bash", "-c", PRELUDE + code + "\n" + command], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=LIMIT_SECONDS, check=False)
    return done.returncode, PROGRESS.sub("", done.stdout.decode("utf-8", "backslashreplace"))


def check(path, kvoracle, update):
    """Runs a transcript; gives the number of misfits."""
    lines = path.read_text("utf-8").split("\n")
    code, cases = parse(path.name, lines)
    changed = []
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="kvoracle_transcript_") as folder:
            for step in case.steps:
                status, output = run(step.command, code, folder, kvoracle)
                if fault := misfit(step, status, output):
                    print(f"{path.name}:{step.number + 1}: {case.title}: {fault}\n$ {step.command}\n{output}")
                    changed.append((step, status, output))
    if update:
        for step, status, output in reversed(changed):
            first, *rest = step.command.split("\n")
            lines[step.number:step.end] = ["$ " + first, *["> " + line for line in rest], *[f"? {status}"] * bool(status),
                                           *output.rstrip("\n").split("\n")]
        path.write_text("\n".join(lines), "utf-8")
    return len(changed)


def main(words):
    if words[:1] == ["--json"]:
        j = json.load(sys.stdin)
        for expression in words[1:]:
            print(eval(expression, {"j": j}))  # pylint: disable=eval-used
        return 0
    update = words[:1] == ["--update"]
    kvoracle, *files = words[update:]
    if not files:
        raise SystemExit("usage: transcript.py [--update] KVORACLE FILE..")
    return 1 if sum(check(pathlib.Path(file), pathlib.Path(kvoracle).resolve(), update) for file in files) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
