"""mlx_lm.models.cache, live, on contract mlx_lm: one method for each operation (docs/mlx_lm.md), translation alone."""

from __future__ import annotations

import copy
from typing import Any, Callable

from kvoracle import Refused, Tensor, serve
from kvoracle.systems.mlx_lm.engine import load

RELEASE = load()
import mlx.core as mx  # noqa: E402
import mlx_lm.models.cache as engine  # noqa: E402
import numpy  # noqa: E402

CLASSES = {
    "kv": engine.KVCache,
    "concatenate": engine.ConcatenateKVCache,
    "rotating": engine.RotatingKVCache,
    "chunked": engine.ChunkedKVCache,
    "quantized": engine.QuantizedKVCache,
    "batch-kv": engine.BatchKVCache,
    "batch-rotating": engine.BatchRotatingKVCache,
    "arrays": engine.ArraysCache,
}
KINDS = {made: kind for kind, made in CLASSES.items()}
STEPPED = [made for made in CLASSES.values() if hasattr(made, "step")]
MOST = {"step": 1 << 12, "max_size": 1 << 24, "keep": 1 << 24, "chunk_size": 1 << 24, "size": 1 << 12}
MOST_TOKENS = 1 << 10
WINDOW_OF_STORE = 4


def array_of(tensor: Tensor) -> mx.array:
    if tensor.dtype == "bf16":
        return mx.array(numpy.frombuffer(tensor.bits, numpy.uint16).reshape(tensor.shape)).view(mx.bfloat16)
    return mx.array(tensor.numpy())


def tensor_of(array: mx.array) -> Tensor:
    if array.dtype == mx.bfloat16:
        return Tensor.of_bits(array.shape, numpy.array(array.view(mx.uint16)), "bf16")
    return Tensor.of_numpy(numpy.array(array))


def shown(value: Any) -> Any:
    """What an operation returns: a number, an array, quantized rows, or a list of these."""
    if isinstance(value, mx.array):
        return tensor_of(value)
    if isinstance(value, Rows):
        return dict(zip(("w", "scales", "biases"), map(tensor_of, value)))
    return list(map(shown, value)) if isinstance(value, (list, tuple)) else value


class Rows(tuple):
    """Quantized rows: words, scales and biases."""


def rows(side: Any) -> Any:
    return Rows(side) if isinstance(side, (list, tuple)) else side


def refused(why: Exception) -> Refused:
    code = "not_supported" if isinstance(why, NotImplementedError) else "precondition"
    return Refused(code, f"{type(why).__name__}: {why}")


def called(of: Any, method: str, *arguments: Any, **named: Any) -> Any:
    """What a method of the engine returns (ML-A4)."""
    if not hasattr(of, method):
        raise Refused("not_supported", f"{type(of).__name__} has no {method}")
    try:
        return getattr(of, method)(*arguments, **named)
    except Exception as why:
        raise refused(why) from None


def beyond(what: str) -> Refused:
    """An argument beyond the limits of the contract (ML-A5)."""
    return Refused("precondition", what)


def within(name: str, value: int, least: int = 0) -> None:
    if not least <= value <= MOST[name]:
        raise beyond(f"{name}: {value}: allowed are {least} to {MOST[name]}")


def gathered(cache: Any) -> list[Any]:
    """The arrays that `filter` takes rows of."""
    if isinstance(cache, engine.ArraysCache):
        return [*cache.cache, *(getattr(cache, name, None) for name in ("left_padding", "lengths"))]
    return [getattr(cache, name, None) for name in ("keys", "values", "offset", "left_padding")]


class Caches:
    """The caches of a case, by number."""

    def __init__(self, config: dict[str, Any], profile: str) -> None:
        self.config = config
        self.all: list[Any] = []
        self.pairs: list[tuple[Any, Any]] = []

    def cache(self, number: int) -> Any:
        # The step is an attribute of the classes, which the caches of all cases share.
        for stepped in STEPPED:
            stepped.step = self.config.get("step", 256)
        if not 0 <= number < len(self.all):
            raise beyond(f"no cache {number}")
        return self.all[number]

    def add(self, cache: Any) -> dict[str, int]:
        self.all.append(cache)
        return {"cache": len(self.all) - 1}

    def new(self, kind: str, **given: Any) -> dict[str, int]:
        options = {"step": 256, "max_size": 0, "keep": 0, "chunk_size": 0, "size": 0, **self.config, **given}
        padding = options.get("left_padding") or []
        for name in MOST:
            within(name, options[name], least=1 if name == "step" else 0)
        if not padding and kind.startswith("batch"):
            raise beyond("left_padding: no row")
        if len(padding) > MOST["size"] or not all(0 <= one <= MOST["max_size"] for one in padding):
            raise beyond("left_padding")
        arguments = {
            "rotating": (options["max_size"], options["keep"]),
            "chunked": (options["chunk_size"],),
            "quantized": (options.get("group_size", 64), options.get("bits", 8)),
            "batch-kv": (padding,),
            "batch-rotating": (options["max_size"], padding),
            "arrays": (options["size"], padding or None),
        }
        if kind not in CLASSES:
            raise beyond(f"kind: {kind}: allowed are {', '.join(CLASSES)}")
        return self.add(CLASSES[kind](*arguments.get(kind, ())))

    def offset(self, cache: int) -> dict[str, Any]:
        own = self.cache(cache)
        if not hasattr(own, "offset"):
            raise Refused("not_supported", "no offset")
        return {"offset": own.offset.tolist() if isinstance(own.offset, mx.array) else own.offset}

    def info(self, cache: int) -> dict[str, Any]:
        own = self.cache(cache)
        try:
            seen = {"size": own.size(), "empty": own.empty(), "nbytes": own.nbytes, "trimmable": own.is_trimmable()}
        except Exception as why:
            raise refused(why) from None
        return {**seen, "batch_size": own.batch_size} if hasattr(own, "batch_size") else seen

    def state(self, cache: int) -> dict[str, Any]:
        own = self.cache(cache)
        state = own.state
        if isinstance(own, engine.QuantizedKVCache):
            state = [rows(state[0]), rows(state[1]), *state[2:]]
        return {"state": shown(state)}

    def update(self, cache: int, k: Tensor, v: Tensor, keep: bool = False) -> dict[str, Any]:
        own = self.cache(cache)
        if not all(len(side.shape) == 4 and side.dtype in ("f32", "f16", "bf16") for side in (k, v)):
            raise beyond("rows are numbers with a fraction, of four axes")
        given = array_of(k), array_of(v)
        pair = tuple(map(rows, called(own, "update_and_fetch", *given)))
        returned = {"k": shown(pair[0]), "v": shown(pair[1])}
        if keep:
            self.pairs += [pair, given]
            returned.update(handle=len(self.pairs) - 1, input_handle=len(self.pairs))
        return returned

    def keys_and_values(self, cache: int) -> dict[str, Any]:
        k, v = map(rows, called(self.cache(cache), "keys_and_values"))
        return {"k": shown(k), "v": shown(v)}

    def reread(self, handle: int) -> dict[str, Any]:
        if not 0 < handle <= len(self.pairs):
            raise beyond(f"no handle {handle}")
        k, v = self.pairs[handle - 1]
        return {"k": shown(k), "v": shown(v)}

    def trim(self, cache: int, n: int) -> dict[str, Any]:
        return {"n": called(self.cache(cache), "trim", n)}

    def is_trimmable(self, cache: int) -> dict[str, Any]:
        return {"trimmable": called(self.cache(cache), "is_trimmable")}

    def make_mask(self, cache: int, N: int, window_size: int | None = None, return_array: bool = False) -> dict[str, Any]:
        own = self.cache(cache)
        named: dict[str, Any] = {"window_size": window_size, "return_array": return_array}
        if isinstance(own, engine.ArraysCache):
            named = {name: value for name, value in named.items() if value}
        return {"mask": shown(called(own, "make_mask", N, **named))}

    def copy(self, cache: int, deep: bool) -> dict[str, Any]:
        return self.add((copy.deepcopy if deep else copy.copy)(self.cache(cache)))

    def from_state(self, cache: int) -> dict[str, Any]:
        own = self.cache(cache)
        parts = (own.state, own.meta_state) if hasattr(own, "meta_state") else (own.state,)  # before 0.32
        return self.add(called(type(own), "from_state", *parts))

    def of_one_kind(self, numbers: list[int]) -> list[Any]:
        caches = list(map(self.cache, numbers))
        if not caches or any(type(one) is not type(caches[0]) for one in caches):
            raise beyond("caches of one kind")
        return caches

    def merge(self, caches: list[int]) -> dict[str, Any]:
        if caches and not hasattr(self.cache(caches[0]), "merge"):
            raise Refused("not_supported", "no merge")
        own = self.of_one_kind(caches)
        return self.named(called(type(own[0]), "merge", own))

    def extract(self, cache: int, idx: int) -> dict[str, Any]:
        return self.named(called(self.cache(cache), "extract", idx))

    def named(self, cache: Any) -> dict[str, Any]:
        return {**self.add(cache), "kind": KINDS[type(cache)]}

    def to_quantized(self, cache: int, group_size: int = 64, bits: int = 8) -> dict[str, Any]:
        return self.add(called(self.cache(cache), "to_quantized", group_size, bits))

    def dequantized(self, cache: int) -> dict[str, Any]:
        own = self.cache(cache)
        if not isinstance(own, engine.QuantizedKVCache):
            raise Refused("not_supported", "no quantized rows")
        named = {"group_size": own.group_size, "bits": own.bits}
        try:
            k, v = (mx.dequantize(*side, **named) for side in own.keys_and_values())
        except Exception as why:
            raise refused(why) from None
        return {"k": tensor_of(k), "v": tensor_of(v)}

    def maybe_trim_front(self, cache: int) -> dict[str, Any]:
        own = self.cache(cache)
        called(own, "maybe_trim_front")
        return {"offset": own.offset, "start_position": own.start_position}

    def filter(self, cache: int, indices: list[int]) -> None:
        own = self.cache(cache)
        if hasattr(own, "filter"):  # MLX does not check the rows that it takes
            for array in gathered(own):
                if array is not None and any(not -len(array) <= row < len(array) for row in indices):
                    raise beyond("no such row")
        called(own, "filter", indices)

    def extend(self, cache: int, other: int) -> None:
        own = self.cache(cache)
        if hasattr(own, "extend"):
            self.of_one_kind([cache, other])
        called(own, "extend", self.cache(other))

    def prepare(self, cache: int, **given: Any) -> None:
        own = self.cache(cache)
        if not all(given.values()):
            raise beyond("a list without numbers")
        called(own, "prepare", **given)

    def finalize(self, cache: int) -> None:
        called(self.cache(cache), "finalize")

    def set(self, cache: int, idx: int, v: Tensor) -> None:
        called(self.cache(cache), "__setitem__", idx, array_of(v))

    def advance(self, cache: int, n: int) -> None:
        called(self.cache(cache), "advance", n)


class Store:
    """The LRUPromptCache of a case."""

    MODEL = "model"

    def __init__(self, config: dict[str, Any], profile: str) -> None:
        self.step = config.get("step", 256)
        self.own: Any = None

    def new(self, max_size: int, kind: str = "prompt-lru", max_bytes: int | None = None) -> None:
        if kind != "prompt-lru" or max_size < 0 or (max_bytes or 0) < 0:
            raise beyond("kind, max_size, max_bytes")
        bytes_ = {} if max_bytes is None else {"max_bytes": max_bytes}
        self.own = engine.LRUPromptCache(max_size, **bytes_)

    def there(self) -> Any:
        if self.own is None:
            raise beyond("no store")
        return self.own

    def fetch(self, tokens: list[int]) -> dict[str, Any]:
        found_, rest = called(self.there(), "fetch_nearest_cache", self.MODEL, tokens)
        if found_ is None:
            return {"k": None, "rest": rest}
        cache = found_[0]
        if isinstance(cache, engine.ArraysCache):
            return {"k": tensor_of(cache[0]), "rest": rest}
        return {"k": tensor_of(cache.keys_and_values()[0]), "offset": cache.offset, "rest": rest}

    def insert(self, tokens: list[int], kind: str, cache_type: str) -> dict[str, int]:
        store = self.there()
        if len(tokens) > MOST_TOKENS or kind not in ("kv", "rotating", "chunked", "arrays"):
            raise beyond("tokens, kind")
        within("step", self.step, 1)
        for stepped in STEPPED:
            stepped.step = self.step
        array = mx.array(tokens, mx.float32).reshape(1, 1, -1, 1)
        arguments = {"rotating": [WINDOW_OF_STORE], "chunked": [WINDOW_OF_STORE], "arrays": [1]}
        cache = CLASSES[kind](*arguments.get(kind, []))
        if kind == "arrays":
            cache[0] = array
        else:
            called(cache, "update_and_fetch", array, array)
        if kind == "chunked":
            called(cache, "maybe_trim_front")
        called(store, "insert_cache", self.MODEL, tokens, [cache], cache_type=cache_type)
        return self.totals()

    def trim_to(self, **most: int) -> dict[str, int]:
        called(self.there(), "trim_to", **most)
        return self.totals()

    def totals(self) -> dict[str, int]:
        return {"len": len(self.own), "nbytes": self.own.nbytes}


SERVED: dict[str, Callable[[dict[str, Any], str], Any]] = {f"mlx_lm.{kind.replace('-', '_')}": Caches for kind in CLASSES}
SERVED["mlx_lm.prompt_lru"] = Store
serve(SERVED, system="mlx-lm", version=RELEASE.version)
