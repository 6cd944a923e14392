"""A pytest fixture that drives a cache.

Use  `def test_cache(kvoracle_check): kvoracle_check("mine.py")`
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Callable

import pytest


@pytest.fixture
def kvoracle_check() -> Callable[..., None]:
    """Runs `kvoracle check` on an adapter; fails with its report, which has the shrunk script.

    Arguments
        program      the adapter: a file of Python, or a list of words
        kind         of cache; absent: all of the adapter
        cases        random cases
        profile      original or documented
        conventions  a file of conventions
    """

    def check(
        program: str | Sequence[str],
        kind: str = "",
        cases: int = 200,
        profile: str = "documented",
        conventions: str | None = None,
    ) -> None:
        command = shutil.which("kvoracle")
        if command is None:
            pytest.skip("no command kvoracle")
        words = [sys.executable, program] if isinstance(program, str) else list(program)
        call = [command, "check", f"{kind}@exec:{shlex.join(words)}", "--profile", profile]
        call += ["--cases", str(cases)]
        if conventions is not None:
            call += ["--conventions", conventions]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"{shlex.join(call)}\n{done.stdout}{done.stderr}", pytrace=False)

    return check
