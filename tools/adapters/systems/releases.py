"""Calls that differ from release to release."""

from __future__ import annotations

import inspect
from typing import Any, Callable


def call(function: Callable[..., Any], *arguments: Any, lacks: type[Exception], may_lack: tuple[str, ...] = (), **named: Any) -> Any:
    """Calls a function of the engine with the named arguments that this release has. Raises `lacks` if another one has a value
    but None, False or 0; those of `may_lack` are left out."""
    parameters = inspect.signature(function).parameters
    if any(name not in parameters and name not in may_lack and value for name, value in named.items()):
        raise lacks
    return function(*arguments, **{name: value for name, value in named.items() if name in parameters})
