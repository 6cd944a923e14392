"""Exceptions of an engine as answers to the harness."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

from kvoracle import Panic, Refused, Unsupported

Cache = TypeVar("Cache", bound=type)


def panics(cache: Cache) -> Cache:
    """A class decorator: what an operation raises and does not translate is a panic of the engine. Contracts say which calls
    panic; any other panic is a mismatch. `_begin()` and `_end()` of a cache surround each operation and give marks of its state.
    A panic between different marks ends the case: references change nothing then."""
    for name, method in list(vars(cache).items()):
        if callable(method) and not name.startswith("_"):
            setattr(cache, name, _panicking(method))
    return cache


def _panicking(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(self: Any, **named: Any) -> Any:
        if getattr(self, "_spoiled", False):
            raise Unsupported
        before = self._begin()
        try:
            returned = method(self, **named)
        except (Refused, Unsupported):
            self._end()
            raise
        except Exception as error:
            self._spoiled = self._end() != before
            raise Panic(f"{type(error).__name__}: {error}") from error
        self._end()
        return returned
    return called
