"""vLLM's `KVCacheManager` and its planner: `python3 -m kvoracle.systems.vllm [--folder DIR]`."""
from __future__ import annotations

from kvoracle import serve
from kvoracle.systems.vllm import engine

VLLM = engine.load()

from kvoracle.systems.vllm import blocks, groups, plan  # noqa: E402

KINDS = {"prefix.blocks": blocks.Blocks, "groups.blocks": groups.Groups, "groups.plan": plan.Plan}
NEEDS = {"record": "record_prefix_cache_stats", "pop": "pop_blocks_for_free", "cached_tokens": "estimate_cached_tokens",
         "match_connector": "get_computed_blocks_for_connector", "copies": "take_kv_cache_block_copies",
         "zero": "record_blocks_for_zeroing", "clip": "get_block_ids_for_computed_tokens",
         "offloads": "take_boundary_state_offloads", "finalize": "finalize_partial_tail_offloads"}
"""Operations that not every release has, and a method of KVCacheManager that tells."""


def offered(cache: type) -> list[str]:
    return [name for name in dir(cache) if name[0] != "_" and hasattr(groups.KVCacheManager, NEEDS.get(name, "free"))]


if __name__ == "__main__":
    serve(KINDS, system="vllm KVCacheManager", version=VLLM.version,
          operations={kind: offered(cache) for kind, cache in KINDS.items()})
