"""SGLang's `UnifiedRadixCache` over its tree in Rust, contract `prefix.radix`: `python3 -m kvoracle.systems.sglang.unified_rust`.

The compiled tree shows no node, so `state` is left out, and the order of `all_slots` changes from run to run. Handles number the
nodes as they are made, the root is 1. Nodes that leave are seen where the cache evicts them. The tree begins another event
where the extra key differs: here they are joined as the tree in Python joins its own. All else is as in `unified`.
"""
from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from kvoracle import Unsupported, serve
from kvoracle.systems.raised import panics
from kvoracle.systems.sglang.__main__ import SGLANG, Answer, CacheInitParams, torch
from kvoracle.systems.sglang.unified import CONVENTIONS, Unified
from sglang.srt.mem_cache.events import KVCacheEventRecorder

ITS_CONVENTIONS = [each for each in CONVENTIONS if "all_slots" not in each] + ["without all_slots", "without state"]

module: Any = importlib.import_module
# Both ask first for which torch the tree could be built. It is built.
module("sglang.srt.mem_cache.unified_cache.tree_core_registry").resolve_tree_core_backend = lambda name, params: name
module("sglang.srt.rust_extensions").load_rust_extension = lambda name, **build: module(name)


class Evicted:
    """The nodes that the cache evicts from a tree."""

    def __init__(self, core: Any) -> None:
        self._nodes: list[int] = []
        evict = core.evict_device_leaf

        def noted(node: int, *rest: Any) -> Any:
            self._nodes.append(node - 1)
            return evict(node, *rest)
        core.evict_device_leaf = noted

    def taken(self) -> list[int]:
        nodes, self._nodes = self._nodes, []
        return nodes


@panics
class UnifiedRust(Unified):
    def _made(self, params: CacheInitParams) -> Any:
        params.tree_core_backend = "rust"
        return super()._made(params)

    def _number_nodes(self, core: Any) -> None:
        """They have numbers."""

    def _noting_removals(self) -> Any:
        return Evicted(self._core)

    def _number(self, node: Any) -> int | None:
        return None if node is None else node - 1

    def _named(self, number: int) -> Any:
        self._end_if_gone(number + 1)
        return number + 1

    def _end_if_gone(self, node: int) -> None:
        try:
            self._core.is_full_device_evicted(node)
        except KeyError as error:
            raise Unsupported from error

    def events(self) -> Answer:
        joined = SimpleNamespace(_queue=[])
        for event in self._tree.take_events():
            KVCacheEventRecorder.enqueue(joined, event)
        return {"events": [self._event(each) for each in joined._queue]}

    def _end(self) -> tuple[int, ...]:
        return self._marks()

    def _begin(self) -> tuple[int, ...]:
        return self._marks()

    def _marks(self) -> tuple[int, ...]:
        core = self._core
        return (core.evictable_size(), core.protected_size(), self._pool.available_size())


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve({"prefix.radix": UnifiedRust}, system="sglang UnifiedRadixCache", version=SGLANG.version,
          conventions={"prefix.radix": ITS_CONVENTIONS})
