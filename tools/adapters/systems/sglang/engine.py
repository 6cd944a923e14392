"""Imports the caches of an SGLang without the rest of the engine."""

from __future__ import annotations

import hashlib
import importlib
import types
from typing import Any

from kvoracle.systems import found, stand_in


def page_hashes(key: Any, before: bytes | None, page_size: int) -> list[str]:
    """Chained SHA-256 of pages, in place of the engine's compiled one. Equal contents have equal hashes."""
    tokens, chain = list(key), before or b""
    hashes = []
    for start in range(0, len(tokens), page_size):
        chain = hashlib.sha256(chain + repr(tokens[start:start + page_size]).encode()).digest()
        hashes.append(chain.hex())
    return hashes


CACHE = [f"sglang.srt.mem_cache.{name}" for name in (
    "allocator", "base_prefix_cache", "cache_init_params", "events", "evict_policy", "radix_cache", "session_radix_cache", "utils")
] + ["sglang.srt.disaggregation.kv_events"]
REQUESTS = ["sglang.srt.dllm.mixin.req", "sglang.srt.managers.schedule_batch", "sglang.srt.utils", "sglang.srt.mem_cache.common",
            "sglang.srt.mem_cache.rust_tree_core", "sglang.srt.mem_cache.unified_cache", "sglang.srt.mem_cache.unified_radix_cache",
            "sglang.srt.mem_cache.base_swa_memory_pool", "sglang.srt.mem_cache.pure_swa_radix_cache",
            "sglang.srt.mem_cache.hicache_storage", "sglang.srt.session.streaming_session", "sglang.srt.utils.rank_consensus_checker"]


def has_requests(release: found.Found) -> bool:
    """Whether requests of this release are driven: what `Req` imports differs from release to release."""
    return found.parts(release.version) >= [0, 5, 22]


def load(arguments: list[str] | None = None) -> found.Found:
    """Finds the release (found.find) and makes its modules of caches importable, for tensors of the CPU. Before 0.5.22 these are
    the tree and the allocators alone."""
    release = found.find("sglang", arguments)
    module: Any = importlib.import_module
    if not has_requests(release):
        stand_in.only("sglang", release.folder, CACHE)
        module("sglang.srt.utils").get_bool_env_var = lambda name: False
        module("sglang.srt.mem_cache.utils").get_native_hash = page_hashes
        return release
    stand_in.only("sglang", release.folder, CACHE + REQUESTS)
    common, schedule_batch = module("sglang.srt.mem_cache.common"), module("sglang.srt.managers.schedule_batch")
    serving = types.SimpleNamespace(strip_thinking_cache=False, speculative_algorithm=None)
    common.get_serving = common.get_spec = schedule_batch.get_serving = lambda: serving
    common.envs.SGLANG_RADIX_FORCE_MISS = types.SimpleNamespace(get=lambda: False)
    for name, value in (("SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND", "python"), ("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK", False),
                        ("SGLANG_OPT_UNIFIED_CACHE_FREE_OUT_OF_WINDOW_SLOTS", False)):
        setattr(common.envs, name, types.SimpleNamespace(get=lambda value=value: value))
    module("sglang.srt.mem_cache.utils").get_native_hash = page_hashes
    platform = types.SimpleNamespace(capabilities=types.SimpleNamespace(supports_triton=False))
    module("sglang.srt.mem_cache.allocator.paged").current_platform = platform
    return release
