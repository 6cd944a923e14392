from __future__ import annotations

from array import array
from typing import Any, Callable

from kvoracle import NotSupported, Refused, Unsupported, serve
from kvoracle.systems import releases
from kvoracle.systems.raised import panics
from kvoracle.systems.sglang import engine

SGLANG = engine.load()

import torch  # noqa: E402

import sglang.srt.managers.schedule_batch as schedule_batch  # noqa: E402
from sglang.srt.disaggregation.kv_events import AllBlocksCleared, BlockRemoved  # noqa: E402
from sglang.srt.mem_cache import common  # noqa: E402
from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator, TokenToKVPoolAllocator  # noqa: E402
from sglang.srt.mem_cache.base_prefix_cache import EvictParams, InsertParams, MatchPrefixParams  # noqa: E402
from sglang.srt.mem_cache.cache_init_params import CacheInitParams  # noqa: E402
from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey, TreeNode  # noqa: E402

Answer = dict[str, Any]
LACKS = [] if engine.has_requests(SGLANG) else [
    "request", "admit", "extend", "checkpoint", "withdraw", "finish", "row", "make_room", "touch", "alloc_extend", "alloc_decode"
] + ([] if hasattr(PagedTokenToKVPoolAllocator, "free_segment") else ["free_segment"])
"""What is not driven of a release before 0.5.22. Its paged pool allocates by kernels of a card."""


def tensor(numbers: list[int]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


class Rows:
    """The slots of requests, in place of ReqToTokenPool: one row a request, as long as it gets."""

    def __init__(self) -> None:
        self._rows: dict[int, torch.Tensor] = {}
        self.req_to_token = self

    def __getitem__(self, place: Any) -> torch.Tensor:
        return self._rows[place] if isinstance(place, int) else self._rows[place[0]][place[1]]

    def write(self, place: tuple[int, slice], slots: torch.Tensor) -> None:
        self[place][:] = slots

    def extend(self, row: int, slots: torch.Tensor) -> None:
        self._rows[row] = torch.cat((self._rows.get(row, tensor([])), slots))

    def free(self, req: Any) -> None:
        del self._rows[req.kv.req_pool_idx]
        req.kv.req_pool_idx = None


class Recorder:
    """The recorder of events of a release whose tree records its own."""

    def __init__(self, tree: Any) -> None:
        self.record_remove = tree._record_remove_event


class Removed:
    """The recorder of events, which is shown each node that is evicted."""

    def __init__(self, recorder: Any, number: Callable[[Any], int | None]) -> None:
        self._recorder, self._number = recorder, number
        self.nodes: list[int | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)

    def record_remove(self, node: Any, **medium: Any) -> None:
        self.nodes.append(self._number(node))
        self._recorder.record_remove(node, **medium)

    def taken(self) -> list[int | None]:
        nodes, self.nodes = self.nodes, []
        return nodes


@panics
class Radix:
    _counted: Any = TreeNode
    """The class that counts its nodes."""

    def _made_pool(self, size: int, slots: int, sort: bool) -> Any:
        if size == 1:
            return TokenToKVPoolAllocator(slots, torch.int64, "cpu", None, sort)
        return PagedTokenToKVPoolAllocator(slots, size, torch.int64, "cpu", None, sort)

    def _made(self, params: CacheInitParams) -> Any:
        """The cache, and what has its nodes, sizes and events."""
        cache = RadixCache(params)
        return cache, cache

    def _noting_removals(self) -> Any:
        """What has the nodes that were evicted since it was asked."""
        if hasattr(self._core, "kv_events"):
            self._core.kv_events = removed = Removed(self._core.kv_events, self._number)
        else:
            removed = Removed(Recorder(self._core), self._number)
            self._core._record_remove_event = removed.record_remove
        return removed

    def _number(self, node: Any) -> int | None:
        """Of a node, or of what the cache returns for one."""
        return node and node.id

    def _named(self, number: int) -> Any:
        return self._nodes[number]

    def __init__(self, config: Answer, profile: str) -> None:
        size = config["page_size"]
        self._pool = self._made_pool(size, config["slots"], config["need_sort"])
        threshold = config.get("slru_threshold")
        limits = {"protected_threshold": threshold} if config["policy"] == "slru" and threshold is not None else None
        self._rows, self._requests, self._keys, self._policy = Rows(), {}, {}, config["policy"]
        self._created, self._nodes = 0, {}
        self._counted.counter = 0
        try:
            self._tree, self._core = self._made(releases.call(
                CacheInitParams, config["disable"], self._rows, self._pool, size, is_eagle=config["eagle"],
                eviction_policy=config["policy"], eviction_policy_config=limits, enable_kv_cache_events=config["events"],
                lacks=NotSupported))
        except ValueError as refusal:
            raise NotSupported(str(refusal)) from refusal
        self._removed = self._noting_removals()
        self._end()

    def _begin(self) -> tuple[int, ...]:
        self._counted.counter = self._created  # the class counts nodes; here each case does
        return self._marks()

    def _end(self) -> tuple[int, ...]:
        if self._counted.counter != self._created:
            self._created = self._counted.counter
            self._nodes.update((node.id, node) for node in self._walk())  # the next operation may evict them
        return self._marks()

    def _marks(self) -> tuple[int, ...]:
        core, pool = self._core, self._pool
        deferred = [len(getattr(pool, name, None) or []) for name in ("free_group", "free_page_ids_group")]
        return (self._created, core.evictable_size(), core.protected_size(), len(self._leaves()), pool.available_size(), *deferred)

    def _leaves(self) -> Any:
        return self._core.evictable_leaves

    def _walk(self) -> list[Any]:
        nodes = [self._core.root_node]
        for node in nodes:
            nodes.extend(node.children.values())
        return nodes

    def _key(self, tokens: list[int], extra: str | None, salt: str | None, limit: int | None = None) -> RadixKey:
        return releases.call(RadixKey, array("q", tokens), extra, limit=limit, cache_salt=salt, lacks=Unsupported)

    def _slots_to(self, node: Any) -> list[int]:
        return self._tree.path_device_indices(node).tolist()

    def match(self, tokens: list[int], extra: str | None = None, salt: str | None = None, limit: int | None = None) -> Answer:
        its = self._tree.match_prefix(MatchPrefixParams(key=self._key(tokens, extra, salt, limit)))
        slots = its.device_indices.tolist() if hasattr(its, "device_indices") else self._slots_to(its.last_device_node)
        return {"length": getattr(its, "device_prefix_len", len(slots)), "node": self._number(its.last_device_node), "slots": slots}

    def touch(self, tokens: list[int], extra: str | None = None, salt: str | None = None, limit: int | None = None) -> None:
        self._tree.touch_prefix(self._key(tokens, extra, salt, limit))

    def insert(self, tokens: list[int], slots: list[int] | None = None, extra: str | None = None, salt: str | None = None,
               priority: int = 0, inserted: int = 0) -> Answer:
        its = self._tree.insert(releases.call(
            InsertParams, key=self._key(tokens, extra, salt), value=None if slots is None else tensor(slots), priority=priority,
            inserted_len=inserted, lacks=Unsupported))
        return {"length": its.prefix_len, "node": self._number(its.last_device_node)}

    def evict(self, tokens: int) -> Answer:
        its = self._tree.evict(EvictParams(num_tokens=tokens))
        return {"tokens": its.num_tokens_evicted, "nodes": self._removed.taken()}

    def lock(self, node: int) -> Answer:
        return {"delta": self._tree.inc_lock_ref(self._named(node)).delta}

    def unlock(self, node: int) -> Answer:
        return {"delta": self._tree.dec_lock_ref(self._named(node)).delta}

    def reset(self) -> None:
        self._tree.reset()

    def all_slots(self) -> Answer:
        return {"slots": self._tree.all_values_flatten().tolist()}

    def _handed_out(self, slots: torch.Tensor | None) -> list[int]:
        if slots is None:
            raise Refused("exhausted")
        return slots.tolist()

    def alloc(self, count: int) -> Answer:
        return {"slots": self._handed_out(self._pool.alloc(count))}

    def alloc_extend(self, prefix_lens: list[int], seq_lens: list[int], last_slots: list[int]) -> Answer:
        before, after = tensor(prefix_lens), tensor(seq_lens)
        try:
            slots = self._pool.alloc_extend(before, before, after, after, tensor(last_slots), sum(seq_lens) - sum(prefix_lens))
        except NotImplementedError as refusal:
            raise Refused("not_supported", str(refusal)) from refusal
        return {"slots": self._handed_out(slots)}

    def alloc_decode(self, seq_lens: list[int], last_slots: list[int]) -> Answer:
        after = tensor(seq_lens)
        try:
            slots = self._pool.alloc_decode(after, after, tensor(last_slots))
        except NotImplementedError as refusal:
            raise Refused("not_supported", str(refusal)) from refusal
        return {"slots": self._handed_out(slots)}

    def free(self, slots: list[int]) -> None:
        self._pool.free(tensor(slots))

    def free_segment(self, slots: list[int], start: int) -> None:
        self._pool.free_segment(tensor(slots), start_pos=start)

    def group_begin(self) -> None:
        self._pool.free_group_begin()

    def group_end(self) -> None:
        self._pool.free_group_end()

    def clear(self) -> None:
        self._pool.clear()

    def make_room(self, tokens: int) -> Answer:
        common.evict_from_tree_cache(self._tree, tokens)
        return {"nodes": self._removed.taken()}

    def request(self, request: int, tokens: list[int], extra: str | None = None, salt: str | None = None,
                priority: int = 0) -> None:
        if request in self._requests and self._requests[request].lock is not None:
            raise Refused("precondition", "it is admitted")
        self._requests[request] = schedule_batch.Req(str(request), "", array("q", tokens), None, extra_key=extra, cache_salt=salt,
                                                     priority=priority)

    def admit(self, request: int) -> Answer:
        req = self._requests[request]
        req.init_next_round_input(self._tree)
        req.lock = self._tree.lock(req.last_node)
        return {"length": req.prefix_len, "node": self._number(req.last_node), "slots": self._tree.prefix_device_indices(req).tolist()}

    def _leave_window(self, req: schedule_batch.Req) -> Answer:
        """Frees what left a request's window, and shows it."""
        return {}

    def extend(self, request: int, tokens: int, append: list[int] | None = None) -> Answer:
        """As alloc_for_extend does for a batch of one."""
        req = self._requests[request]
        row = self._rows[req.kv.req_pool_idx] if req.kv.holds_kv else self._tree.prefix_device_indices(req)
        req.output_ids.extend(append or [])
        req.refresh_fill_ids()
        left = self._leave_window(req)
        length, size = len(row), self._pool.page_size
        common.evict_from_tree_cache(self._tree, tokens + (size if size > 1 else 0))
        nodes = self._removed.taken()
        if size == 1:
            slots = self._pool.alloc(tokens)
        else:
            before, after, last = tensor([length]), tensor([length + tokens]), row[-1:] if length else tensor([-1])
            slots = self._pool.alloc_extend(before, before, after, after, last, tokens)
        if slots is None:
            raise Refused("exhausted", nodes=nodes, **left)
        if not req.kv.holds_kv:
            req.kv.req_pool_idx = request
            self._rows.extend(request, row)
        self._rows.extend(request, slots)
        req.kv.kv_allocated_len = req.kv.kv_committed_len = req.extend_end = length + tokens
        return {"slots": slots.tolist(), "nodes": nodes, **left}

    def checkpoint(self, request: int) -> Answer:
        req = self._requests[request]
        common.checkpoint_kv_cache(req, self._tree)
        return {"node": self._number(req.lock.node), "protected": req.kv.cache_protected_len}

    def withdraw(self, request: int) -> None:
        req = self._requests[request]
        self._tree.unlock(req.lock)
        req.lock = None

    def finish(self, request: int, keep: bool = True) -> None:
        common.release_kv_cache(self._requests[request], self._tree, checkpoint=keep)

    def row(self, request: int) -> Answer:
        req = self._requests[request]
        return {"slots": self._rows[request].tolist(), "protected": req.kv.cache_protected_len,
                "inserted": req.kv.cache_inserted_len, "node": self._number(req.lock.node)}

    def events(self) -> Answer:
        return {"events": [self._event(each) for each in self._tree.take_events()]}

    def _number_of_key(self, key: int) -> int:
        return self._keys.setdefault(key, len(self._keys))

    def _event(self, event: Any) -> Answer:
        if isinstance(event, AllBlocksCleared):
            return {"kind": "cleared"}
        if isinstance(event, BlockRemoved):
            return {"kind": "removed", "keys": [self._number_of_key(key) for key in event.block_hashes]}
        parent = None if event.parent_block_hash is None else self._number_of_key(event.parent_block_hash)
        return {"kind": "stored", "keys": [self._number_of_key(key) for key in event.block_hashes], "parent": parent,
                "tokens": list(event.token_ids), "block_size": event.block_size}

    def _standing(self, node: Any) -> Any:
        ordered = self._policy != "tlru"  # whose order needs fields that nodes lack
        return self._core.eviction_strategy.get_priority(node) if ordered else 0, node.id

    def _held(self, node: Any) -> Any:
        """What has a node's slots and locks."""
        return node

    def _total(self) -> int:
        return self._core.total_size()

    def _lists(self) -> Any:
        """What has the lists of free slots."""
        return self._pool

    def state(self) -> Answer:
        core, pool = self._core, self._lists()
        staged = torch.cat([tensor([]), *pool.staged_pages]) if hasattr(pool, "staged_pages") else pool.release_pages
        nodes = sorted(self._walk()[1:], key=lambda node: node.id)
        leaves = sorted(self._leaves(), key=self._standing)
        return {"evictable": core.evictable_size(), "protected": core.protected_size(), "total": self._total(),
                "available": pool.available_size(), "free": pool.free_pages.tolist(), "staged": staged.tolist(),
                "nodes": [{"node": self._number(node), "parent": self._number(node.parent), "tokens": list(node.key.raw_token_ids()),
                           "slots": self._held(node).value.tolist(), "lock": self._held(node).lock_ref, "hits": node.hit_count,
                           "priority": node.priority, "extra": node.key.extra_key, "salt": getattr(node.key, "cache_salt", None)}
                          for node in nodes],
                "leaves": [self._number(node) for node in leaves]}


def lacking(self: Radix, **arguments: Any) -> Answer:
    raise Refused("not_supported")


for name in LACKS:
    setattr(Radix, name, lacking)


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve({"prefix.radix": Radix}, system="sglang RadixCache", version=SGLANG.version,
          conventions={"prefix.radix": [f"without {name}" for name in LACKS]})
