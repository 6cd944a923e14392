"""SGLang's `UnifiedRadixCache` with full attention alone, contract `prefix.radix`: `python3 -m kvoracle.systems.sglang.unified`.

A case ends, and is no fault, where a node is named that is no longer there, or a lock that was never taken: this tree refuses
both. It also ends where a request frees pages of several nodes: they are freed node by node, and handed out in another order.
Its `insert` frees slots that the tree has already. As in `RadixCache`, requests alone do that here.
"""
from __future__ import annotations

from typing import Any

from kvoracle import NotSupported, Unsupported, serve
from kvoracle.systems.raised import panics
from kvoracle.systems.sglang.__main__ import (
    SGLANG, Answer, CacheInitParams, InsertParams, Radix, tensor, torch)
from sglang.srt.mem_cache.unified_cache.components import ComponentType
from sglang.srt.mem_cache.unified_cache.unified_tree_core import UnifiedTreeNode
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

FULL = ComponentType.FULL
POLICIES = ["lru", "lfu", "mru", "priority", "slru"]
"""Under fifo and filo parts of a node are as old as the node, and tlru knows how long a branch was."""
CONVENTIONS = [
    # In a group it evicts until slots are available, which those freed are when the group ends.
    "without group_begin", "without group_end",
    "without reset",  # no request outlives one: SGLang flushes its cache when none runs
    "accepts all_slots precondition",  # of an empty tree
    "accepts finish precondition", "accepts checkpoint precondition",  # of a row with more slots than tokens
    'config policy only default "lfu" "mru" "priority" "slru"',
]


@panics
class Unified(Radix):
    _counted = UnifiedTreeNode

    def __init__(self, config: Answer, profile: str) -> None:
        if config["policy"] not in POLICIES:
            raise NotSupported(f"policy {config['policy']}")
        self._numbers: dict[int, int] = {}
        self._receipts: dict[int, list[Any]] = {}
        self._frees = 0
        super().__init__(config, profile)

    def _made(self, params: CacheInitParams) -> Any:
        params.tree_components = (FULL,)
        free = self._pool.free_segment

        def counted(slots: torch.Tensor, **named: Any) -> None:
            self._frees += 1
            free(slots, **named)
        self._pool.free_segment = counted
        cache = UnifiedRadixCache(params)
        self._number_nodes(cache.tree_core)
        return cache, cache.tree_core

    def _number_nodes(self, core: Any) -> None:
        register = core._register_node  # lists of its have nodes, too, which are not registered

        def numbered(node: Any) -> None:
            self._numbers[node.id] = len(self._numbers)
            self._nodes[self._numbers[node.id]] = node
            register(node)
        numbered(core.root_node)
        core._register_node = numbered

    def _number(self, node: Any) -> int | None:
        return None if node is None else self._numbers[getattr(node, "id", node)]

    def _named(self, number: int) -> Any:
        node = self._nodes[number].id
        self._end_if_gone(node)
        return node

    def _end_if_gone(self, node: int) -> None:
        if node not in self._core._node_arena:
            raise Unsupported

    def _end(self) -> tuple[int, ...]:
        self._created = self._counted.counter
        return self._marks()

    def _leaves(self) -> Any:
        return self._core.evictable_device_leaves

    def _held(self, node: Any) -> Any:
        return node.component_data[FULL]

    def _total(self) -> int:
        return self._core.total_size()[0]

    def insert(self, tokens: list[int], slots: list[int] | None = None, extra: str | None = None, salt: str | None = None,
               priority: int = 0, inserted: int = 0) -> Answer:
        its = self._tree.insert(InsertParams(key=self._key(tokens, extra, salt), value=None if slots is None else tensor(slots),
                                             priority=priority, inserted_len=inserted, prev_prefix_len=len(tokens)))
        return {"length": its.prefix_len, "node": self._number(its.last_device_node)}

    def lock(self, node: int) -> Answer:
        before = self._core.evictable_size()  # it returns no delta that counts
        self._receipts.setdefault(node, []).append(self._tree.inc_lock_ref(self._named(node)).to_dec_params())
        return {"delta": self._core.evictable_size() - before}

    def unlock(self, node: int) -> Answer:
        before = self._core.evictable_size()
        if not self._receipts.get(node):
            raise Unsupported
        self._tree.dec_lock_ref(self._named(node), self._receipts[node].pop())
        return {"delta": self._core.evictable_size() - before}

    def extend(self, request: int, tokens: int, append: list[int] | None = None) -> Answer:
        req = self._requests[request]
        if not req.kv.holds_kv:
            self._end_if_gone(req.last_node)
        return super().extend(request=request, tokens=tokens, append=append)

    def checkpoint(self, request: int) -> Answer:
        self._frees = 0
        answer = super().checkpoint(request=request)
        self._end_if_freed_in_parts()
        return answer

    def finish(self, request: int, keep: bool = True) -> None:
        self._frees = 0
        super().finish(request=request, keep=keep)
        self._end_if_freed_in_parts()

    def _end_if_freed_in_parts(self) -> None:
        self._spoiled = self._pool.page_size > 1 and self._frees > 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve({"prefix.radix": Unified}, system="sglang UnifiedRadixCache", version=SGLANG.version,
          conventions={"prefix.radix": CONVENTIONS})
