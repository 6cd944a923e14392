"""Tests that SGLang's UnifiedRadixCache should pass. Those of 0.5.23 fail: docs/findings.md of kvoracle explains each.

They need SGLang alone, no GPU and no model: pytest findings/sglang
"""

from array import array
from types import SimpleNamespace

import torch

from sglang.srt.managers.schedule_batch import ReqKvInfo
from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
from sglang.srt.mem_cache.base_prefix_cache import EvictParams, InsertParams, MatchPrefixParams
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.radix_cache import RadixKey
from sglang.srt.mem_cache.unified_cache.components import ComponentType
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache


def key(tokens):
    return RadixKey(array("q", tokens), None)


def test_rest_is_renewed_unified():
    """Policy lru evicts the least recently used tokens first; "splitting does not access the suffix"."""
    allocator = TokenToKVPoolAllocator(32, torch.int64, "cpu", None, False)
    cache = UnifiedRadixCache(CacheInitParams(
        disable=False, req_to_token_pool=None, token_to_kv_pool_allocator=allocator, page_size=1, eviction_policy="lru",
        tree_components=(ComponentType.FULL,)))
    for tokens in ([100, 101, 102, 103], [1, 2]):
        cache.insert(InsertParams(key=key(tokens), value=allocator.alloc(len(tokens))))
    cache.match_prefix(MatchPrefixParams(key=key([100, 101])))
    cache.evict(EvictParams(num_tokens=1))
    hit = cache.match_prefix(MatchPrefixParams(key=key([1, 2]))).device_prefix_len
    assert hit == 2, "the tail 102, 103 was used before 1, 2, and outlived them"


class Rows:
    def __init__(self):
        self.req_to_token = torch.zeros((1, 32), dtype=torch.int64)

    def write(self, place, slots):
        self.req_to_token[place] = slots


def test_stripped_after_retraction_aborts():
    """--strip-thinking-cache: "keep only the prompt prefix" of a request that thought."""
    allocator, rows = TokenToKVPoolAllocator(32, torch.int64, "cpu", None, False), Rows()
    cache = UnifiedRadixCache(CacheInitParams(
        disable=False, req_to_token_pool=rows, token_to_kv_pool_allocator=allocator, page_size=1, eviction_policy="lru",
        tree_components=(ComponentType.FULL,)))
    tokens = array("q", [100, 101, 1, 2, 3])
    req = SimpleNamespace(
        rid="0", kv=ReqKvInfo(req_pool_idx=0), origin_input_ids=tokens[:2], full_untruncated_fill_ids=tokens, extra_key=None,
        cache_salt=None, priority=0, session=None, session_id=None, kv_rotation_base=None, lock=None, finished=lambda: False)
    rows.req_to_token[0, :5] = allocator.alloc(5)
    cache.checkpoint(req, up_to=5)  # a retracted request extends prompt and output again
    req.finished = lambda: True
    cache.checkpoint(req, up_to=2)  # what owned_kv_len() says at its end
