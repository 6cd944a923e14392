"""Tests that SGLang's PureSWARadixCache should pass. Those of 0.5.23 fail: docs/findings.md of kvoracle explains each.

They need SGLang alone, no GPU and no model: pytest findings/sglang
"""

from array import array
from types import SimpleNamespace
from unittest.mock import Mock

import torch

from sglang.srt.managers.schedule_batch import ReqKvInfo
from sglang.srt.mem_cache.allocator.swa import PureSWATokenToKVPoolAllocator
from sglang.srt.mem_cache.base_prefix_cache import EvictParams, MatchPrefixParams
from sglang.srt.mem_cache.base_swa_memory_pool import BaseSWAKVPool
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.pure_swa_radix_cache import PureSWARadixCache
from sglang.srt.mem_cache.radix_cache import RadixKey

WINDOW, SLOTS = 4, 400


class Rows:
    def __init__(self):
        self.req_to_token = torch.zeros((1, SLOTS), dtype=torch.int64)

    def write(self, place, slots):
        self.req_to_token[place] = slots


def finished_request(output):
    """A cache after one request: a prompt of two tokens, so many of output, and the end, each step as the scheduler does it."""
    allocator = PureSWATokenToKVPoolAllocator(SLOTS, 1, torch.int64, "cpu", Mock(spec=BaseSWAKVPool, swa_kv_pool=None), False)
    rows = Rows()
    cache = PureSWARadixCache(CacheInitParams(
        disable=False, req_to_token_pool=rows, token_to_kv_pool_allocator=allocator, page_size=1, sliding_window_size=WINDOW))
    tokens = array("q", range(100, 102 + output))
    req = SimpleNamespace(
        kv=ReqKvInfo(req_pool_idx=0), origin_input_ids=tokens[:2], full_untruncated_fill_ids=tokens, extra_key=None, cache_salt=None,
        priority=0, finished=lambda: False)
    req.last_node = cache.match_prefix(MatchPrefixParams(key=RadixKey(tokens[:2], None))).last_device_node
    req.lock = cache.lock(req.last_node)
    rows.req_to_token[0, :2] = allocator.alloc(2)
    cache.checkpoint(req, up_to=2)
    for length in range(2, 2 + output):
        cache.evict_sliding_windows(req, length)
        rows.req_to_token[0, length:length + 1] = allocator.alloc(1)
    cache.checkpoint(req, up_to=len(tokens))
    cache.free_kv_row(req.kv, [(req.kv.cache_protected_len, len(tokens))])
    cache.unlock(req.lock)
    return cache, allocator, tokens


def test_left_rows_are_filed():
    """Only caches the prefill portion [0, evict_floor) on request completion. Window-range KV is freed."""
    cache, allocator, tokens = finished_request(output=12)
    others = allocator.alloc(allocator.available_size()).tolist()
    node = cache.match_prefix(MatchPrefixParams(key=RadixKey(tokens, None))).last_device_node
    hit = cache.path_device_indices(node).tolist()
    twice = sorted(set(hit) & set(others))
    assert not twice, f"slots {twice} are hit with these tokens, and another request has them"


def test_left_rows_are_freed_twice():
    """No slot is freed twice: "Free exactly these pages; no page twice, no dedup." (allocator/paged.py)."""
    cache, allocator, _ = finished_request(output=12)
    allocator.alloc(300)
    cache.evict(EvictParams(num_tokens=SLOTS))
    free = allocator.swa_attn_allocator.free_pages.tolist()
    assert len(free) == len(set(free)), "a slot is in the list of free ones twice"
