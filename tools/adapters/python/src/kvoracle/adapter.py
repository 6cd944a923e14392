"""Answers a harness: one line of JSON for each line that it sends (docs/adapters.md)."""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import keyword
import math
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Callable

from .tensor import Memory, Tensor, json_of_tensor, tensor_of_json

PROTOCOL = 1


class Refused(Exception):
    """The cache refuses a call, as its contract allows: an outcome, and no fault.

    `code`  one of full, not_supported, out_of_range, bad_shape, exhausted, bad_position, closed,
            precondition, or other:REASON.
    """

    def __init__(self, code: str, detail: str = "", **values: Any) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = detail
        self.values = values


class NotSupported(Refused):
    """Raised by a constructor: the cache cannot have this config."""

    def __init__(self, detail: str = "") -> None:
        super().__init__("not_supported", detail)


class Unsupported(Exception):
    """Raised by a method: the cache has no such operation. The case ends, which is no fault."""


class Panic(Exception):
    """Where the system that a contract follows panics, and the rules say precondition."""


_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _given(value: Any, memory: Memory | None) -> Any:
    if isinstance(value, list):
        return value if all(map(_is_number, value)) else [_given(one, memory) for one in value]
    if isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    if isinstance(value, str) and value.startswith("nan:"):
        return struct.unpack("<f", struct.pack("<I", int(value[4:])))[0]
    if not isinstance(value, dict):
        return value
    if "shape" in value and ("data" in value or "bits" in value or "at" in value):
        return tensor_of_json(value, memory)
    return {name: _given(one, memory) for name, one in value.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _shown(value: Any, memory: Memory | None) -> Any:
    if isinstance(value, Tensor):
        return json_of_tensor(value, memory)
    if isinstance(value, float) and not math.isfinite(value):
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        return f"nan:{bits}" if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {name: _shown(one, memory) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(one, memory) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _shown(getattr(value, field.name), memory)
            for field in dataclasses.fields(value)
            if getattr(value, field.name) is not ABSENT
        }
    return value


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Any = _Absent()
"""The value of a member that is left out."""


class _Server:
    def __init__(
        self,
        caches: Mapping[str, Callable[[dict[str, Any], str], Any]],
        greeting: dict[str, Any],
        answers: BinaryIO,
    ) -> None:
        self._caches = caches
        self._greeting = greeting
        self._answers = answers
        self._memory: Memory | None = None
        self._cases: dict[int, Any] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "op" in request:
            self._restart()
            return self._call(self._cases[request["case"]], request)
        if "batch" in request:
            self._restart()
            cache = self._cases[request["case"]]
            return {"batch": [self._call(cache, one) for one in request["batch"]]}
        if "open" in request:
            return self._open(request["open"])
        if "close" in request:
            self._cases.pop(request["close"], None)
            return {}
        if "hello" in request:
            memory = request["hello"].get("memory")
            if memory:
                self._memory = Memory(memory["file"], memory["bytes"])
            return {"hello": {**self._greeting, "memory": memory is not None}}
        return {"fault": f"unknown request {sorted(request)}"}

    def _restart(self) -> None:
        if self._memory is not None:
            self._memory.restart()

    def _open(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            made = self._caches[asked["kind"]](asked["config"], asked["profile"])
        except NotSupported as refusal:
            return {"error": "not_supported", "detail": refusal.detail}
        self._cases[asked["case"]] = made
        return {}

    def _call(self, cache: Any, request: dict[str, Any]) -> dict[str, Any]:
        name = request["op"]
        method = getattr(cache, name, None) or getattr(cache, name + "_", None)
        if method is None:
            return {"unsupported": True}
        arguments = {
            key + "_" if keyword.iskeyword(key) else key: _given(one, self._memory)
            for key, one in request["args"].items()
        }
        begin = time.perf_counter_ns()
        try:
            returned = method(**arguments)
        except Refused as refusal:
            ret: dict[str, Any] = {**_shown(refusal.values, self._memory), "error": refusal.code}
            if refusal.detail:
                ret["detail"] = refusal.detail
            return {"ret": ret, "ns": time.perf_counter_ns() - begin}
        except Unsupported:
            return {"unsupported": True}
        except Panic as panic:
            return {"ret": {"panic": str(panic)}, "ns": time.perf_counter_ns() - begin}
        except Exception as error:  # whatever the cache lets escape is a finding
            traceback.print_exc()
            return {"threw": f"{type(error).__name__}: {error}"}
        spent = time.perf_counter_ns() - begin
        return {"ret": {} if returned is None else _shown(returned, self._memory), "ns": spent}


def serve(
    caches: Mapping[str, Callable[[dict[str, Any], str], Any]],
    *,
    system: str,
    version: str,
    conventions: Mapping[str, Sequence[str]] | None = None,
    conventions_of: str = "",
    operations: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Answers the harness on standard input until it ends.

    caches       makes a cache of each kind ("prefix.blocks"), from the config of a case and the
                 profile; it may raise NotSupported. Operations are its methods, by name.
    system       what is driven, and its version
    conventions  of each kind, rows as of a file of conventions
    conventions_of  the release whose conventions these are, where they are not of this one
    operations   of each kind, those that its caches have; a kind that is left out has all

    What the program prints goes to standard error: standard output is the harness's.
    """
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    greeting: dict[str, Any] = {
        "protocol": PROTOCOL,
        "system": system,
        "version": version,
        "kinds": [
            {
                "kind": kind,
                "conventions": list((conventions or {}).get(kind, [])),
                "operations": list((operations or {}).get(kind, [])),
            }
            for kind in caches
        ],
        "batches": True,
        "stacks": True,
    }
    if conventions_of:
        greeting["conventions_of"] = conventions_of
    server = _Server(caches, greeting, answers)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            answer = server.answer(request)
        except Exception as error:  # the adapter's own
            traceback.print_exc()
            answer = {"fault": f"{type(error).__name__}: {error}"}
        answer["id"] = request.get("id")
        answers.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
