"""transformers.cache_utils, live, on contract dynamic: one method for each operation (docs/dynamic.md), translation alone."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Any, Callable

from kvoracle import NotSupported, Refused, Tensor, serve
from kvoracle.systems.transformers.engine import load

RELEASE = load()
import torch  # noqa: E402
import transformers.cache_utils as engine  # noqa: E402

torch.set_num_threads(1)

# HF-6: the codes of what the engine raises. Any other text is its own code.
CODES = [
    (r"AttributeError: '(?!NoneType)\w+' object has no attribute", "not_supported"),
    (r"NotImplementedError: ", "not_supported"),
    (r"\w+: .*\bcrop\b|\w+: .*can only be cropped", "not_supported"),
    (r"TypeError: .* is only defined for dynamic cache", "not_supported"),
    (r"ValueError: (Cannot|You) call|ValueError: Cannot get|ValueError: .*can only be called on", "not_supported"),
    (r"IndexError: index_copy_", "full"),
    (r"IndexError: (list index out of range|index out of range in self|index .*is out of bounds)", "out_of_range"),
    (r"RuntimeError: (Repeats must be non-negative|INDICES element is out of|index_select\(\): self index)", "out_of_range"),
    (r"RuntimeError: ", "bad_shape"),
]
MOST_SIZE, MOST_LAYERS, MOST_COUNT = 1 << 24, 1 << 12, 1 << 31


def refused(why: Exception) -> Refused:
    text = f"{type(why).__name__}: {why}"
    return Refused(next((code for form, code in CODES if re.match(form, text)), f"other:{why}"), text)


def beyond(what: str) -> Refused:
    """An argument outside of the contract (HF-6)."""
    return Refused("precondition", what)


def called(method: Callable[[], Any]) -> Any:
    try:
        return method()
    except Exception as why:
        raise refused(why) from None


def given(tensor: Tensor) -> torch.Tensor:
    if not len(tensor.bits):
        return torch.empty(tensor.shape)
    return torch.frombuffer(tensor.bits, dtype=torch.float32).reshape(tensor.shape)


def shown(tensor: torch.Tensor | None) -> Tensor | None:
    return None if tensor is None else Tensor.of_numpy(tensor.numpy())


def pair(keys: torch.Tensor | None, values: torch.Tensor | None) -> dict[str, Any]:
    return {"k": shown(keys), "v": shown(values)}


class Exact(engine.QuantizedLayer):
    """A quantized layer whose quantizer loses nothing (HF-61)."""

    def _quantize(self, tensor: torch.Tensor, axis: int) -> torch.Tensor:
        return tensor.clone()

    def _dequantize(self, q_tensor: torch.Tensor) -> torch.Tensor:
        return q_tensor


engine.QuantoQuantizedLayer = Exact
Fp8 = getattr(engine, "Fp8QuantizedLayer", ())
BY_POSITION = "cache_position" in inspect.signature(engine.Cache.get_mask_sizes).parameters
"""Before 5.4 a caller passes the positions of new tokens, as a model counts them: from `get_seq_length` on."""

TYPES = set(getattr(engine, "DYNAMIC_LAYER_TYPE_MAPPING", getattr(engine, "LAYER_TYPE_CACHE_MAPPING", None))
            or ("full_attention", "sliding_attention", "chunked_attention"))
TYPES = TYPES | {"moe", "mlp"} if "dummy" in TYPES else TYPES - {"moe", "mlp"}
"""Of layers. Before 5.23 those without attention were empty layers of another type."""


def number(length: Any) -> int:
    """Of what is promised to be one: an int, or a tensor without axes."""
    if getattr(length, "ndim", 0):
        raise Refused(f"other:a tensor of shape {list(length.shape)}")
    return int(length)


def positions(cache: Any, layer: int, count: int) -> torch.Tensor:
    return torch.arange(count) + int(cache.get_seq_length(layer))


def model_of(config: dict[str, Any], fixed: bool) -> Any:
    """The part of a model's config that a cache reads. None: layers are added as they come."""
    types = config.get("layer_types")
    if types is not None and not set(types) <= TYPES:
        raise NotSupported(f"layer_types: {types}")
    window, chunk = config.get("sliding_window"), config.get("attention_chunk_size")
    if types is None and window is None and chunk is None and config.get("num_layers") is None and not fixed:
        return None
    layers = len(types) if types is not None else config.get("num_layers", 1)
    reusing = config.get("num_kv_shared_layers")
    if reusing is not None and reusing < 0:
        raise NotSupported(f"num_kv_shared_layers: {reusing}")
    storing = max(layers - (reusing or 0), 0)
    needed = {"sliding_window": ("sliding_attention", "hybrid_sliding"), "attention_chunk_size": ("chunked_attention",)}
    for name, kinds in needed.items():
        size = config.get(name)
        if (size is None and not set(kinds).isdisjoint((types or ())[:storing])) or (size is not None and not 1 <= size <= MOST_SIZE):
            raise NotSupported(f"{name}: {size}")
    if not 0 <= layers <= MOST_LAYERS:
        raise NotSupported(f"num_layers: {layers}")
    model = SimpleNamespace(layer_types=types, sliding_window=window, attention_chunk_size=chunk, num_hidden_layers=layers)
    model.per_layer_config = [model] * layers
    if reusing is not None:  # as the config of Gemma 4 has it
        model.num_kv_shared_layers, model.kv_sharing_modes = reusing, [None] * storing + ["reuse"] * (layers - storing)
    model.get_text_config = lambda decoder=True: model
    return model


def dynamic(config: dict[str, Any]) -> Any:
    return engine.DynamicCache(config=model_of(config, fixed=False))


def static(config: dict[str, Any]) -> Any:
    most = config.get("max_cache_len")
    if most is None or not 1 <= most <= MOST_SIZE:
        raise NotSupported(f"max_cache_len: {most}")
    return engine.StaticCache(model_of(config, fixed=True), most)


def quantized(config: dict[str, Any], backend: str, **more: Any) -> Any:
    try:
        return engine.QuantizedCache(backend, model_of(config, fixed=True), **more)
    except ValueError as why:
        raise NotSupported(str(why)) from None


def exact(config: dict[str, Any]) -> Any:
    length = config.get("residual_length", 128)
    if not 1 <= length <= MOST_SIZE:
        raise NotSupported(f"residual_length: {length}")
    return quantized(config, "quanto", residual_length=length)


def fp8(config: dict[str, Any]) -> Any:
    return quantized(config, "fp8")


def both(config: dict[str, Any]) -> Any:
    make = {"dynamic": dynamic, "static": static}
    sides = [make[config.get(side) or "dynamic"](config) for side in ("self", "cross")]
    try:
        return engine.EncoderDecoderCache(*sides)
    except ValueError as why:  # all layers of the other cache reuse keys
        raise NotSupported(str(why)) from None


class Caches:
    """The cache of a case, and what a caller holds of it."""

    def __init__(self, make: Callable[[dict[str, Any]], Any], config: dict[str, Any]) -> None:
        self.own = make(config)
        self.pairs: list[tuple[Any, Any]] = []
        self.lengths: list[Any] = []

    def list_of(self, side: str | None) -> Any:
        if side is None:
            return self.own
        if not isinstance(self.own, engine.EncoderDecoderCache):
            raise beyond("side: the cache is no pair")
        return self.own.self_attention_cache if side == "self" else self.own.cross_attention_cache

    def check(self, cache: Any, layer: int, k: Tensor | None, v: Tensor | None) -> None:
        if (k is None) != (v is None):
            raise beyond("k, v: one of them is null")
        layers = getattr(cache, "layers", [])
        its = layers[layer] if -len(layers) <= layer < len(layers) else None
        if k is None or v is None:
            if isinstance(its, engine.CacheLayerMixin) or (its is None and cache.layer_class_to_replicate):
                raise beyond("k, v: null is for layers without a cache")
            return
        if any(side.dtype != "f32" or len(side.shape) != 4 for side in (k, v)):
            raise beyond("k, v: f32 with the axes batch, head, token, dim")
        if k.shape[2] != v.shape[2]:
            raise beyond("k, v: different numbers of tokens")
        if layer >= max(len(layers), MOST_LAYERS):
            raise beyond("layer")
        if isinstance(its, Fp8) and not its.is_initialized and not (len(k.bits) and len(v.bits)):
            raise beyond("k, v: without elements there is no scale")

    def update(
        self, layer: int, k: Tensor | None, v: Tensor | None, side: str | None = None, keep: bool = False
    ) -> dict[str, Any]:
        cache = self.list_of(side)
        self.check(cache, layer, k, v)
        tensors = [None if one is None else given(one) for one in (k, v)]
        by_position = BY_POSITION and k is not None

        def updated() -> Any:
            at = [{"cache_position": positions(cache, layer, k.shape[2])}] if by_position else []
            return cache.update(*tensors, layer, *at)

        returned = called(updated)
        seen = pair(*returned)
        if keep:
            seen["handle"] = len(self.pairs)
            self.pairs.append(returned)
        return seen

    def reread(self, handle: int) -> dict[str, Any]:
        if not 0 <= handle < len(self.pairs):
            raise beyond(f"handle: no {handle}")
        return pair(*self.pairs[handle])

    def get_seq_length(self, layer: int) -> dict[str, int]:
        return {"seq_length": number(called(lambda: self.own.get_seq_length(layer)))}

    def hold_seq_length(self, layer: int) -> dict[str, int]:
        self.lengths.append(called(lambda: self.own.get_seq_length(layer)))
        return {"seq_length": number(self.lengths[-1]), "handle": len(self.lengths) - 1}

    def reread_seq_length(self, handle: int) -> dict[str, int]:
        if not 0 <= handle < len(self.lengths):
            raise beyond(f"handle: no {handle}")
        return {"seq_length": int(self.lengths[handle])}

    def get_mask_sizes(self, layer: int, query_length: int = 1) -> dict[str, int]:
        def sizes() -> Any:
            queries = positions(self.own, layer, query_length) if BY_POSITION else query_length
            return self.own.get_mask_sizes(queries, layer)

        length, offset = called(sizes)
        return {"kv_length": int(length), "kv_offset": int(offset)}

    def get_max_length(self, layer: int | None) -> dict[str, int]:
        return {"max_length": called(lambda: self.own.get_max_length(layer))}

    def state(self, layer: int, side: str | None = None) -> dict[str, Any]:
        cache = self.list_of(side)

        def stored() -> dict[str, Any]:
            its = cache.layers[layer]
            return {"initialized": its.is_initialized, **pair(its.keys, its.values)}

        return called(stored)

    def num_layers(self) -> dict[str, int]:
        return {"num_layers": len(self.own)}

    def props(self) -> dict[str, Any]:
        cache = self.own

        def properties() -> dict[str, Any]:
            names = ["is_sliding", "is_compileable", "is_initialized"] + ["is_croppable"] * hasattr(engine.Cache, "is_croppable")
            size = cache.batch_size if hasattr(engine.Cache, "batch_size") else cache.max_batch_size
            return {**{name: getattr(cache, name) for name in names}, "batch_size": size}

        return called(properties)

    def crop(self, tokens_to_remove: int) -> None:
        called(lambda: self.own.crop(tokens_to_remove))

    def reorder_cache(self, beam_idx: list[int]) -> None:
        called(lambda: self.own.reorder_cache(torch.tensor(beam_idx, dtype=torch.long)))

    def batch_repeat_interleave(self, repeats: int) -> None:
        is_pair = isinstance(self.own, engine.EncoderDecoderCache)
        lists = [self.own.self_attention_cache, self.own.cross_attention_cache] if is_pair else [self.own]
        for layer in (layer for cache in lists for layer in cache.layers if isinstance(layer, engine.CacheLayerMixin)):
            if any(part is not None and repeats * part.numel() > MOST_SIZE for part in (layer.keys, layer.values)):
                raise beyond("more than 2^24 elements")
        called(lambda: self.own.batch_repeat_interleave(repeats))

    def batch_select_indices(self, indices: list[int]) -> None:
        called(lambda: self.own.batch_select_indices(torch.tensor(indices, dtype=torch.long)))

    def reset(self) -> None:
        called(self.own.reset)

    def activate_past_recording(self) -> None:
        called(self.own.activate_past_recording)

    def early_initialization(self, batch_size: int = 1, num_heads: int = 1, head_dim: int = 1) -> None:
        where = torch.float32, torch.device("cpu")
        called(lambda: self.own.early_initialization(batch_size, num_heads, head_dim, *where))

    def layer_offload(self, layer: int) -> None:
        called(lambda: self.own.layers[layer].offload())

    def layer_prefetch(self, layer: int) -> None:
        called(lambda: self.own.layers[layer].prefetch())

    def update_conv_state(self, layer: int, state: Tensor, conv_kernel_size: int | None = None) -> dict[str, Any]:
        self.check_state(state)
        if conv_kernel_size is not None and not 1 <= conv_kernel_size <= MOST_COUNT:
            raise beyond("conv_kernel_size: at least 1")
        size = {} if conv_kernel_size is None else {"conv_kernel_size": conv_kernel_size}
        return {"state": shown(called(lambda: self.own.update_conv_state(given(state), layer, **size)))}

    def get_conv_state(self, layer: int) -> dict[str, Any]:
        return {"state": shown(called(lambda: self.own.get_conv_state(layer)))}

    def update_recurrent_state(self, layer: int, state: Tensor) -> dict[str, Any]:
        self.check_state(state)
        return {"state": shown(called(lambda: self.own.update_recurrent_state(given(state), layer)))}

    def get_recurrent_state(self, layer: int) -> dict[str, Any]:
        return {"state": shown(called(lambda: self.own.get_recurrent_state(layer)))}

    @staticmethod
    def check_state(state: Tensor) -> None:
        if state.dtype != "f32" or len(state.shape) < 2:
            raise beyond("state: f32 with at least two axes")

    def has_previous_state(self, layer: int | None) -> dict[str, bool]:
        return {"has_previous_state": called(lambda: self.own.has_previous_state(layer))}

    def is_updated(self) -> dict[str, Any]:
        return {"is_updated": list(self.own.is_updated.values())}


def served(make: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any], str], Caches]:
    return lambda config, profile: Caches(make, config)


serve(
    {
        "dynamic.dynamic": served(dynamic),
        "dynamic.static": served(static),
        "dynamic.quantized_identity": served(exact),
        "dynamic.quantized_fp8": served(fp8),
        "dynamic.encoder_decoder": served(both),
    },
    system="transformers",
    version=RELEASE.version,
)
