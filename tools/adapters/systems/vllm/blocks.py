from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from kvoracle import NotSupported, Refused, Unsupported
from kvoracle.systems.raised import panics
from kvoracle.systems.releases import call
from kvoracle.systems.vllm import engine

from vllm import envs
from vllm.distributed.kv_events import AllBlocksCleared, BlockRemoved
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_block_hash, get_request_block_hasher
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec, FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, SlidingWindowSpec)
from vllm.v1.request import Request, RequestStatus

Answer = dict[str, Any]
IN_FLIGHT = next((name for name in ("max_in_flight_tokens", "max_num_batched_tokens")
                  if name in inspect.signature(KVCacheManager).parameters), "max_in_flight_tokens")
STATUS = {"waiting": RequestStatus.WAITING, "running": RequestStatus.RUNNING, "preempted": RequestStatus.PREEMPTED}


class Adapter(NamedTuple):
    """What keys and events read of a LoRARequest. That class asserts a path; the contract needs none (PX-12)."""
    lora_name: str
    lora_path: str
    adapter_id: int = 1

    @property
    def name(self) -> str:
        return self.lora_name


class Evicted:
    """A metrics collector: the blocks that lose a key, in order."""

    def __init__(self) -> None:
        self.blocks: list[int] = []

    def on_block_evicted(self, block: Any) -> None:
        if block.block_hash is not None:
            self.blocks.append(block.block_id)

    def on_block_allocated(self, block: Any) -> None:
        pass

    on_block_accessed = on_block_allocated

    def reset(self) -> None:
        pass

    def taken(self) -> list[int]:
        blocks, self.blocks = self.blocks, []
        return blocks


def spec_of(config: Answer) -> Any:
    shape = {"block_size": config["block_size"], "num_kv_heads": 1, "head_size": 1, "dtype": None}
    if config["attention"] == "sliding_window":
        return SlidingWindowSpec(sliding_window=config["window"], **shape)
    if config["attention"] == "chunked_local":
        return ChunkedLocalAttentionSpec(attention_chunk_size=config["chunk"], **shape)
    return FullAttentionSpec(**shape)


@panics
class Blocks:
    _POOL_REFUSES = True
    """Whether it answers `exhausted` where the pool raises amid an allocation."""

    def __init__(self, config: Answer, profile: str) -> None:
        size = config["block_size"]
        try:
            self._make(config, [KVCacheGroupSpec(["layer"], spec_of(config))], size, size)
        except (AssertionError, ValueError) as refusal:
            raise NotSupported(str(refusal)) from refusal

    def _make(self, config: Answer, groups: list[KVCacheGroupSpec], scheduler_block: int, hash_block: int, **named: Any) -> None:
        """Makes the manager; `named` are further arguments of it. Raises what the engine does, or NotSupported."""
        lookahead = config["hash_lookahead"]
        self._evicted = Evicted()
        layers = call(KVCacheConfig, lacks=NotSupported, may_lack=("prefix_cache_retention_interval",),
                      num_blocks=config["num_blocks"], kv_cache_tensors=[], kv_cache_groups=groups,
                      prefix_cache_retention_interval=config.get("retention"))
        envs.VLLM_PREFIX_CACHE_RETENTION_INTERVAL = config.get("retention")  # before 0.29 it is no argument
        self._manager = call(
            KVCacheManager, layers, lacks=NotSupported, may_lack=("scheduler_block_size",),
            max_model_len=config["max_model_len"], hash_block_size=hash_block, **{IN_FLIGHT: config.get("max_in_flight")},
            enable_caching=config["enable_caching"], use_eagle=config["eagle"], num_hash_lookahead_tokens=lookahead,
            log_stats=True, enable_kv_cache_events=config["events"], watermark=config["watermark"],
            metrics_collector=self._evicted, scheduler_block_size=scheduler_block, **named)
        self._pool = self._manager.block_pool
        self._hasher = call(get_request_block_hasher, hash_block, sha256, lacks=NotSupported,
                            num_hash_lookahead_tokens=lookahead) if config["enable_caching"] else None
        self._requests: dict[int, Request] = {}
        self._keys: dict[bytes, int] = {}

    def _begin(self) -> tuple[int, int]:
        return self._pool.get_num_free_blocks(), len(self._evicted.blocks)

    _end = _begin

    def _keys_of(self, hashes: list[bytes]) -> list[int]:
        return [self._keys.setdefault(each, len(self._keys)) for each in hashes]

    def _blocks(self, numbers: list[int]) -> list[Any]:
        return [self._pool.blocks[number] for number in numbers]

    def request(self, request: int, tokens: list[int], salt: str | None = None, lora: str | None = None,
                lora_path: str | None = None, skip_reading: bool = False, report: str | None = None) -> Answer:
        sampling = engine.SamplingParams(skip_reading_prefix_cache=skip_reading)
        if report:
            sampling.extra_args = {"kv_cache_report_mode": report}
        made = Request(str(request), tokens, sampling, None, cache_salt=salt, block_hasher=self._hasher, lora_request=None if lora is None else Adapter(lora, lora_path or ""))
        self._requests[request] = made
        return {"keys": self._keys_of(made.block_hashes)}

    def append(self, request: int, tokens: list[int]) -> Answer:
        its = self._requests[request]
        before = len(its.block_hashes)
        its.append_output_token_ids(tokens)
        return {"keys": self._keys_of(its.block_hashes[before:])}

    def set(self, request: int, computed: int | None = None, status: str | None = None, in_flight: int | None = None,
            boundary: int | None = None, preemptions: int | None = None) -> None:
        its = self._requests[request]
        for name, value in (("num_computed_tokens", computed), ("status", STATUS.get(status or "")),
                            ("num_in_flight_tokens", in_flight), ("shared_prefix_boundary", boundary),
                            ("num_preemptions", preemptions)):
            if value is not None:
                setattr(its, name, value)

    def _lookup(self, function: Any, request: int, max_length: int | None) -> Any:
        """A lookup, with a limit if there is one. A limit of 0 is one, too."""
        limit = {} if max_length is None else {"max_cache_hit_length": max_length}
        if limit and "max_cache_hit_length" not in inspect.signature(function).parameters:
            raise Unsupported
        return function(self._requests[request], **limit)

    def match(self, request: int, max_length: int | None = None) -> Answer:
        blocks, length, *_ = self._lookup(self._manager.get_computed_blocks, request, max_length)
        return {"blocks": blocks.get_block_ids()[0], "length": length}

    def allocate(self, request: int, tokens: int, hit_blocks: list[int] | None = None, **named: Any) -> Answer:
        blocks, evicted = self._allocate(request, tokens, None if hit_blocks is None else [hit_blocks], **named)
        return {"blocks": blocks[0], "evicted": evicted}

    def _allocate(self, request: int, tokens: int, hit_blocks: list[list[int]] | None, hit_tokens: int = 0, external: int = 0,
                  lookahead: int = 0, delay_caching: bool = False, full_sequence: bool = False, reserved: int = 0,
                  others_scheduled: bool = True, **named: Any) -> tuple[list[list[int]], list[int]]:
        """The blocks of each group, and those that lost their keys."""
        hits = None if hit_blocks is None else self._manager.create_kv_cache_blocks(tuple(map(self._blocks, hit_blocks)))
        try:
            blocks = call(
                self._manager.allocate_slots, self._requests[request], tokens, hit_tokens, hits, lacks=Unsupported,
                may_lack=("has_scheduled_reqs",), num_lookahead_tokens=lookahead, num_external_computed_tokens=external,
                delay_cache_blocks=delay_caching, full_sequence_must_fit=full_sequence, reserved_blocks=reserved,
                has_scheduled_reqs=others_scheduled, **named)
        except ValueError as error:
            if "free blocks" not in str(error) or not self._POOL_REFUSES:
                raise
            self._spoiled, blocks = True, None  # the pool itself refuses, amid the call
        evicted = self._evicted.taken()
        if blocks is None:
            raise Refused("exhausted")
        return list(blocks.get_block_ids()), evicted

    def cache(self, request: int, tokens: int) -> None:
        self._manager.cache_blocks(self._requests[request], tokens)

    def skip(self, request: int, computed: int) -> None:
        self._manager.remove_skipped_blocks(str(request), computed)

    def free(self, request: int) -> None:
        self._manager.free(self._requests[request])

    def pop(self, request: int) -> Answer:
        return {"blocks": [block.block_id for block in self._manager.pop_blocks_for_free(self._requests[request])]}

    def take(self, count: int) -> Answer:
        try:
            blocks = self._pool.get_new_blocks(count)
        except ValueError as refusal:
            raise Refused("exhausted", str(refusal)) from refusal
        return {"blocks": [block.block_id for block in blocks], "evicted": self._evicted.taken()}

    def touch(self, blocks: list[int]) -> None:
        self._pool.touch(self._blocks(blocks))

    def release(self, blocks: list[int]) -> None:
        self._pool.free_blocks(self._blocks(blocks))

    def evict(self, blocks: list[int]) -> Answer:
        self._manager.evict_blocks(blocks)
        return {"evicted": self._evicted.taken()}

    def reset(self) -> Answer:
        return {"done": self._manager.reset_prefix_cache()}

    def lookup(self, key: int) -> Answer:
        sought = next((each for each, number in self._keys.items() if number == key), None)
        its = sought and self._pool.get_cached_block(sought, [0])
        return {"block": its[0].block_id if its else None}

    def table(self, request: int) -> Answer:
        return {"blocks": self._manager.get_block_ids(str(request))[0]}

    def cached_tokens(self, request: int) -> Answer:
        return {"tokens": self._manager.estimate_cached_tokens(self._requests[request])}

    def usage(self) -> Answer:
        return {"usage": self._manager.usage}

    def record(self, request: int, hits: int) -> None:
        self._manager.record_prefix_cache_stats(self._requests[request], hits)

    def stats(self) -> Answer:
        its = self._manager.make_prefix_cache_stats()
        return {name: getattr(its, name) for name in (
            "requests", "queries", "hits", "preempted_requests", "preempted_queries", "preempted_hits", "reset")}

    def events(self) -> Answer:
        return {"events": [self._event(each) for each in self._manager.take_events()]}

    def _event(self, event: Any) -> Answer:
        if isinstance(event, AllBlocksCleared):
            return {"kind": "cleared"}
        keys = self._keys_of(event.block_hashes)
        if isinstance(event, BlockRemoved):
            return {"kind": "removed", "keys": keys}
        parent = event.parent_block_hash
        return {"kind": "stored", "keys": keys, "parent": None if parent is None else self._keys[parent],
                "tokens": event.token_ids, "block_size": event.block_size}

    def state(self) -> Answer:
        numbered = {key: [its.block_id] if hasattr(its, "block_id") else list(its)
                    for key, its in self._pool.cached_block_hash_to_block._cache.items()}
        cached = sorted((self._keys[get_block_hash(key)], blocks) for key, blocks in numbered.items())
        return {"free": self._pool.get_num_free_blocks(),
                "queue": [block.block_id for block in self._pool.free_block_queue.get_all_free_blocks()],
                "refs": [0 if block.is_null else block.ref_cnt for block in self._pool.blocks],  # BlockPool: it "is not maintained"
                "keys": [block.block_hash and self._keys[get_block_hash(block.block_hash)] for block in self._pool.blocks],
                "cached": [{"key": key, "blocks": blocks} for key, blocks in cached]}
