"""Records the calls of a class as an operation log (docs/kvlog.md)."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import keyword
import threading
from collections.abc import Mapping
from typing import Any, Callable, TypeVar

from .adapter import Refused, _shown

_Class = TypeVar("_Class", bound=type)
_cases = itertools.count()
_lock = threading.Lock()


def record(
    kind: str,
    path: str,
    *,
    system: str = "recorded",
    version: str = "0",
    config: Callable[[Any], Mapping[str, Any]] | Mapping[str, Any] | None = None,
    operations: Mapping[str, str] | None = None,
) -> Callable[[_Class], _Class]:
    """A decorator of a class whose methods are operations of a kind of cache.

    Each instance becomes a case of the log at `path`, which is appended to. Each call from outside
    becomes a line with its arguments by name and its results: a mapping or a dataclass. Calls that
    the class makes of its own methods are left out. `close_record()` of an instance writes its
    case.

    config      of the case, or a function that gives it for an instance
    operations  names of operations by method; absent: public methods have the names of operations

    `kvoracle conform LOG` replays the log, `kvoracle shrink` makes it small.
    """
    contract, cache = kind.split(".")

    def decorated(cls: _Class) -> _Class:
        names = operations
        if names is None:
            names = {
                name: name[:-1] if keyword.iskeyword(name[:-1]) else name
                for name, member in vars(cls).items()
                if inspect.isfunction(member) and not name.startswith("_")
            }
        for method, operation in names.items():
            setattr(cls, method, _recorded(getattr(cls, method), operation))
        members: Any = cls
        begin = members.__init__

        @functools.wraps(begin)
        def opened(self: Any, *args: Any, **kwargs: Any) -> None:
            self._kvoracle_path = path
            self._kvoracle_depth = 1
            self._kvoracle_lines = []
            begin(self, *args, **kwargs)
            self._kvoracle_depth = 0
            header = {
                "kvlog": 1,
                "contract": contract,
                "cache": cache,
                "system": system,
                "version": version,
                "config": dict(config(self) if callable(config) else config or {}),
                "case": f"recorded-{next(_cases)}",
            }
            self._kvoracle_lines.append(header)

        members.__init__ = opened
        members.close_record = _write
        return cls

    return decorated


def _recorded(method: Callable[..., Any], operation: str) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._kvoracle_depth:
            return method(self, *args, **kwargs)
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        given.pop(next(iter(signature.parameters)))
        arguments = {
            name[:-1] if keyword.iskeyword(name[:-1]) else name: _shown(value, None)
            for name, value in given.items()
            if value is not None
        }
        line: dict[str, Any] = {"op": operation, "args": arguments}
        self._kvoracle_depth = 1
        try:
            returned = method(self, *args, **kwargs)
            line["ret"] = {} if returned is None else _shown(returned, None)
            return returned
        except Refused as refusal:
            line["ret"] = {**_shown(refusal.values, None), "error": refusal.code}
            raise
        finally:
            self._kvoracle_depth = 0
            self._kvoracle_lines.append(line)

    return called


def _write(self: Any) -> None:
    """Appends the case to the log. The instance begins no new one."""
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self._kvoracle_lines)
    self._kvoracle_lines.clear()
    with _lock, open(self._kvoracle_path, "a", encoding="utf-8") as log:
        log.write(text)
