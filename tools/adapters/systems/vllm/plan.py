"""vLLM's planner, kind `groups.plan`: from layers to groups and sizes."""
from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace
from typing import Any

from kvoracle import Refused, Unsupported
from kvoracle.systems.raised import panics
from kvoracle.systems.releases import call
from kvoracle.systems.vllm.groups import CLASSES, Answer, spec_of

import vllm.v1.core.kv_cache_coordinator as kv_cache_coordinator
import vllm.v1.core.kv_cache_utils as kv_cache_utils
import vllm.v1.kv_cache_interface as interface

try:
    planning: Any = importlib.import_module("vllm.v1.core.kv_cache_planning")  # since 0.33
except ModuleNotFoundError:
    planning = kv_cache_utils

KINDS = {name: kind for kind, name in CLASSES.items()}
LAYOUT = SimpleNamespace(is_block_outermost=False)


def config_of(**cache: Any) -> SimpleNamespace:
    """Of a VllmConfig, what the planner reads."""
    return SimpleNamespace(
        scheduler_config=SimpleNamespace(disable_hybrid_kv_cache_manager=False),
        cache_config=SimpleNamespace(get_resolved_kv_cache_layout=lambda: LAYOUT, **cache),
        attention_config=SimpleNamespace(hisparse_config=None), kv_transfer_config=None, speculative_config=None,
        parallel_config=SimpleNamespace(decode_context_parallel_size=1, prefill_context_parallel_size=1))


def layer_of(layer: Answer) -> Any:
    made = spec_of(layer)
    if hasattr(made, "indexes_kv_by_block_stride"):  # before 0.29 a backend says whether its pages can be padded
        made = dataclasses.replace(made, indexes_kv_by_block_stride=True)
    if layer["kind"] != "full":
        return made
    return dataclasses.replace(made, sliding_window=layer.get("window"), attention_chunk_size=layer.get("chunk"))


def check(layer: Answer) -> None:
    """The planner checks no sizes: here a layer is refused that is no layer of the contract."""
    sizes = [layer.get(name, 1) for name in ("block_size", "heads", "head_size", "state")]
    sizes += [layer[name] for name in ("window", "chunk", "padded") if layer.get(name) is not None]
    kind, has_window = layer["kind"], layer.get("window") is not None
    if not all(1 <= size <= 1 << 16 for size in sizes) or kind in ("rswa", "ring"):
        raise Refused("precondition", f"layers: {layer['name']}")
    if kind != "full" and has_window != kind.startswith("sliding_window"):
        raise Refused("precondition", f"layers: window of {layer['name']}")


@panics
class Plan:
    def __init__(self, config: Answer, profile: str) -> None:
        pass

    def _begin(self) -> None:
        """It has no state."""

    _end = _begin

    def group(self, layers: list[Answer], hybrid: bool = True) -> Answer:
        config = config_of()
        config.scheduler_config.disable_hybrid_kv_cache_manager = not hybrid
        for layer in layers:
            check(layer)
        try:
            made = planning.get_kv_cache_groups(config, {layer["name"]: layer_of(layer) for layer in layers})
        except NotImplementedError as error:
            raise Refused("not_supported", str(error)) from error
        except ValueError as error:
            raise Refused("precondition", str(error)) from error
        except TypeError as error:
            raise Refused("precondition", str(error)) from error
        return {"groups": [self._shown(group) for group in made]}

    @staticmethod
    def _shown(group: Any) -> Answer:
        spec = group.kv_cache_spec
        return {"kind": KINDS.get(type(spec).__name__, "uniform"), "block_size": spec.block_size, "page": spec.page_size_bytes,
                "layers": group.layer_names}

    def sizes(self, groups: list[Answer], caching: bool = True, unit: int | None = None) -> Answer:
        made = interface.KVCacheConfig(num_blocks=1, kv_cache_tensors=[], kv_cache_groups=[
            interface.KVCacheGroupSpec([f"layer {at}"], spec_of(group)) for at, group in enumerate(groups)])
        config = config_of(block_size=groups[0]["block_size"], enable_prefix_caching=caching, prefix_match_unit=unit)
        try:
            scheduler_block, hash_block = kv_cache_utils.resolve_kv_cache_block_sizes(made, config)
        except ValueError as error:
            raise Refused("precondition", str(error)) from error
        if not hasattr(kv_cache_utils, "resolve_cache_hit_alignment_tokens"):
            raise Unsupported
        alignment = kv_cache_utils.resolve_cache_hit_alignment_tokens(made, config, scheduler_block, hash_block)
        return {"scheduler_block": scheduler_block, "hash_block": hash_block, "alignment": alignment}

    def position(self, tokens: int, block: int, drop: bool = False, lookahead: int = 0) -> Answer:
        return {"position": call(interface.get_mamba_prefill_checkpoint_position, tokens, block, drop, lacks=Unsupported,
                                 num_hash_lookahead_tokens=lookahead)}

    def boundaries(self, prompt: int, block: int, drop: bool = False) -> Answer:
        if not hasattr(kv_cache_coordinator, "replay_boundaries"):
            raise Unsupported
        return {"boundaries": kv_cache_coordinator.replay_boundaries(prompt, block, drop)}
