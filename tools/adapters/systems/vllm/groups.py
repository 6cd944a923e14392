"""vLLM's `KVCacheManager` with several groups of layers, kind `groups.blocks`, and the scheduler's cut of chunks."""
from __future__ import annotations

import inspect
import math
from types import SimpleNamespace
from typing import Any

from kvoracle import NotSupported, Panic, Refused, Unsupported
from kvoracle.systems.raised import panics
from kvoracle.systems.releases import call
from kvoracle.systems.vllm.blocks import Answer, Blocks

import vllm.v1.kv_cache_interface as interface
from vllm.distributed.kv_events import AllBlocksCleared, BlockRemoved
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_block_hash, get_group_id
from vllm.v1.core.sched.scheduler import Scheduler

CLASSES = {"full": "FullAttentionSpec", "mla": "MLAAttentionSpec", "sliding_window": "SlidingWindowSpec",
           "sliding_window_mla": "SlidingWindowMLASpec", "chunked_local": "ChunkedLocalAttentionSpec", "rswa": "RSWASpec",
           "mamba": "MambaSpec", "ring": "CircularBufferSpec"}
SPECS = {kind: getattr(interface, name, None) for kind, name in CLASSES.items()}
JUNCTION = next((name for name in ("enable_mamba_shared_prefix_checkpoint", "enable_mamba_fine_grained_prefix_cache")
                 if name in inspect.signature(KVCacheManager).parameters), "junction")
WINDOWS = {"sliding_window": "sliding_window", "sliding_window_mla": "sliding_window", "rswa": "rswa_window"}


def spec_of(group: Answer) -> Any:
    """Of a group, or of a layer of the planner."""
    kind, its = group["kind"], SPECS[group["kind"]]
    if its is None:
        raise NotSupported(f"no {CLASSES[kind]}")
    named: Answer = {"block_size": group["block_size"]}
    if kind == "mamba":
        named |= {"shapes": ((group.get("state", 1),),), "dtypes": (None,), "mamba_cache_mode": group.get("mode", "align"),
                  "num_speculative_blocks": group.get("speculative", 0),
                  "num_prefill_checkpoint_blocks": group.get("checkpoints", 0),
                  "prefill_checkpoint_alignment": group.get("checkpoint_alignment") or None}
    else:
        named |= {"num_kv_heads": group.get("heads", 1), "head_size": group.get("head_size", 1), "dtype": None}
    if kind in WINDOWS:
        named |= {WINDOWS[kind]: group.get("window", 1)}
    if kind in ("sliding_window", "sliding_window_mla"):
        named |= {"extra_retained_tokens": group.get("retained", 0)}
    if group.get("replay"):
        named |= {"bounded_replay": True}
    if kind == "chunked_local":
        named |= {"attention_chunk_size": group.get("chunk", 1)}
    if group.get("padded") is not None:
        named |= {"page_size_padded": group["padded"]}
    return call(its, lacks=NotSupported, may_lack=("dtype",), **named)


class Ascending(dict[int, Any]):
    """The further keys of blocks. The engine has a set, and so no order, in which they are taken off (GR-27)."""

    def __init__(self, keys: dict[bytes, int]) -> None:
        super().__init__()
        self._keys = keys

    def pop(self, block: int, default: Any = ()) -> Any:
        return sorted(super().pop(block, default), key=lambda key: self._keys[get_block_hash(key)])


@panics
class Groups(Blocks):
    _POOL_REFUSES = False

    def __init__(self, config: Answer, profile: str) -> None:
        sizes = [group["block_size"] for group in config["groups"]]
        self._scheduler_block, self._hash_block = math.lcm(*sizes), config["hash_block"]
        self._config, self._refusal = config, None
        groups = [call(interface.KVCacheGroupSpec, [f"layer {at}"], spec_of(group), lacks=NotSupported,
                       is_eagle_group=group.get("draft", False)) for at, group in enumerate(config["groups"])]
        named = {"num_prefill_lookahead": config["prefill_lookahead"]}
        if config["junction"]:
            named[JUNCTION] = True
        try:
            self._make(config, groups, self._scheduler_block, self._hash_block, **named)
        except ValueError as error:
            self._refusal = Refused("precondition", str(error))
        except AssertionError as error:
            self._refusal = Panic(f"AssertionError: {error}")
        else:
            if hasattr(self._pool, "cached_block_hashes_by_block"):
                self._pool.cached_block_hashes_by_block = Ascending(self._keys)

    def _begin(self) -> tuple[int, int]:
        if self._refusal is not None:
            raise self._refusal
        return super()._begin()

    @property
    def _junction(self) -> bool:
        its = self._manager
        return getattr(its, "mamba_shared_prefix_checkpoint", getattr(its, "mamba_fine_grained_prefix_cache", False))

    def setup(self) -> Answer:
        its = self._manager.coordinator
        partial = getattr(its, "enable_partial_hash_hits", False)
        sets = [each[1] if isinstance(each, tuple) else each.group_ids for each in getattr(its, "attention_groups", [])]
        drops = getattr(its, "drop_eagle_group_ids", None)
        if drops is None:
            drops = getattr(its, "eagle_group_ids", set())
        return {"scheduler_block": getattr(its, "scheduler_block_size", self._scheduler_block),
                "alignment": getattr(its, "_cache_hit_alignment_tokens", self._scheduler_block), "partial": partial,
                "lookup": sets, "drops": sorted(drops),
                "junction": self._junction,
                "caps": [getattr(each, "max_admission_blocks_per_request", getattr(each, "_max_admission_blocks_per_request", None))
                         for each in its.single_type_managers]}

    def match(self, request: int, max_length: int | None = None) -> Answer:
        blocks, length, *rest = self._lookup(self._manager.get_computed_blocks, request, max_length)
        uncached = getattr(self._manager.coordinator, "num_uncached_common_prefix_tokens", 0)  # before 0.26
        boundary = rest[0] if rest else uncached and length + uncached
        return {"blocks": blocks.get_block_ids(), "length": length, "boundary": boundary}

    def match_connector(self, request: int, max_length: int | None = None) -> Answer:
        blocks, length, boundary, diverged = self._lookup(self._manager.get_computed_blocks_for_connector, request, max_length)
        return {"blocks": blocks.get_block_ids(), "length": length, "boundary": boundary, "diverged": diverged}

    def split(self, request: int, tokens: int, hit_tokens: int = 0, external: int = 0) -> Answer:
        """`Scheduler._mamba_block_aligned_split` with what `Scheduler.__init__` derives from the same config."""
        config, partial = self._config, getattr(self._manager.coordinator, "enable_partial_hash_hits", False)
        states = [group for group in config["groups"] if group["kind"] == "mamba"]
        scheduler = SimpleNamespace(
            cache_config=SimpleNamespace(block_size=config.get("split_block", self._scheduler_block)),
            block_size=self._scheduler_block, hash_block_size=self._hash_block, mamba_partial_cache_hit=partial,
            use_eagle_block_drop=config["eagle"], use_eagle=config["eagle"],
            num_hash_lookahead_tokens=config["hash_lookahead"],
            mamba_has_prefill_checkpoint_blocks=bool(states) and all(group.get("checkpoints", 0) for group in states),
            mamba_prefill_checkpoint_alignment=next(
                (group.get("checkpoint_alignment") or None for group in states), None),
            max_num_scheduled_tokens=config.get("max_scheduled", config["max_model_len"]),
            scheduler_config=SimpleNamespace(long_prefill_token_threshold=0),
            **dict.fromkeys(("mamba_shared_prefix_checkpoint", "mamba_fine_grained_prefix_cache"), partial and self._junction))
        return {"tokens": Scheduler._mamba_block_aligned_split(scheduler, self._requests[request], tokens, hit_tokens, external)}

    def allocate(self, request: int, tokens: int, hit_blocks: list[list[int]] | None = None,
                 loaded_groups: list[int] | None = None, **named: Any) -> Answer:
        skipped = {"skip_zeroing_group_ids": tuple(loaded_groups)} if loaded_groups else {}
        blocks, evicted = self._allocate(request, tokens, hit_blocks, **named, **skipped)
        return {"blocks": blocks, "evicted": evicted}

    def cache(self, request: int, tokens: int) -> None:
        super().cache(request=request, tokens=tokens)
        self._evicted.taken()  # a checkpoint may lose its keys (GR-46); an allotment shows what it evicts itself

    def skip(self, request: int, computed: int, prompt: int | None = None) -> None:
        call(self._manager.remove_skipped_blocks, self._requests[request].request_id, computed, lacks=Unsupported,
             num_prompt_tokens=prompt)

    def step(self) -> None:
        self._manager.new_step_starts()

    def copies(self) -> Answer:
        copies, retained = self._manager.take_kv_cache_block_copies()
        return {"copies": copies, "retained": [block.block_id for block in retained]}

    def offloads(self) -> Answer:
        return {"offloads": [{"request": int(request), **self._offload(each)}
                             for request, its in self._manager.take_boundary_state_offloads().items() for each in its]}

    def finalize(self, request: int) -> Answer:
        return {"offloads": [self._offload(each)
                             for each in self._manager.finalize_partial_tail_offloads(self._requests[request])]}

    @staticmethod
    def _offload(of: tuple[int, int, int]) -> Answer:
        return dict(zip(("group", "block", "tokens"), of))

    def fresh(self) -> Answer:
        return {"blocks": self._manager.take_new_block_ids()}

    def zero(self, request: int, start: int) -> None:
        self._manager.record_blocks_for_zeroing(self._requests[request].request_id, start)

    def clip(self, request: int, computed: int) -> Answer:
        return {"blocks": self._manager.get_block_ids_for_computed_tokens(str(request), computed)}

    def lookup(self, key: int, groups: list[int]) -> Answer:
        sought = next((each for each, number in self._keys.items() if number == key), None)
        its = self._pool.get_cached_block(sought or b"", groups)
        return {"blocks": None if its is None else [block.block_id for block in its]}

    def cached_tokens(self, request: int) -> Answer:
        return {"tokens": self._manager.estimate_cached_tokens(SimpleNamespace(request_id=str(request)))}

    def table(self, request: int) -> Answer:
        return {"blocks": self._manager.get_block_ids(str(request))}

    def _event(self, event: Any) -> Answer:
        shown = super()._event(event)
        if isinstance(event, AllBlocksCleared):
            return shown
        shown["group"] = event.group_idx
        if not isinstance(event, BlockRemoved):
            shown |= {"attention": event.kv_cache_spec_kind, "window": event.kv_cache_spec_sliding_window}
        return shown

    def _pair(self, key: Any) -> list[int]:
        return [self._keys[get_block_hash(key)], get_group_id(key)]

    def state(self) -> Answer:
        shown, more = super().state(), getattr(self._pool, "cached_block_hashes_by_block", {})
        blocks = self._pool.blocks
        shown["keys"] = [block.block_hash and [self._pair(block.block_hash), *sorted(
            self._pair(key) for key in more.get(block.block_id, ()) if key != block.block_hash)] for block in blocks]
        shown["ends"] = [block.block_hash_num_tokens for block in blocks]
        index = self._pool.cached_block_hash_to_block._cache
        shown["cached"] = [{"key": key, "group": group, "blocks": numbers} for key, group, numbers in sorted(
            (*self._pair(key), [its.block_id] if hasattr(its, "block_id") else list(its)) for key, its in index.items())]
        return shown
