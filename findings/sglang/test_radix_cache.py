"""Tests that SGLang's RadixCache should pass. Those of 0.5.23 fail: docs/findings.md of kvoracle explains each.

They need SGLang alone, no GPU and no model: pytest findings/sglang
"""

from array import array

import torch

from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
from sglang.srt.mem_cache.base_prefix_cache import EvictParams, InsertParams, MatchPrefixParams
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey


def make_cache(policy="lru", slots=32, events=False):
    allocator = TokenToKVPoolAllocator(slots, torch.int64, "cpu", None, False)
    params = CacheInitParams(disable=False, req_to_token_pool=None, token_to_kv_pool_allocator=allocator, page_size=1,
                             eviction_policy=policy, enable_kv_cache_events=events)
    return RadixCache(params), allocator


def key(tokens, extra_key=None):
    return RadixKey(array("q", tokens), extra_key)


def insert(cache, allocator, tokens, extra_key=None):
    slots = allocator.alloc(len(tokens))
    cache.insert(InsertParams(key=key(tokens, extra_key), value=slots))
    return slots.tolist()


def match(cache, tokens, extra_key=None):
    return cache.match_prefix(MatchPrefixParams(key=key(tokens, extra_key)))


def test_rest_is_renewed():
    """Policy lru evicts the least recently used tokens first."""
    cache, allocator = make_cache("lru")
    insert(cache, allocator, [100, 101, 102, 103])
    insert(cache, allocator, [1, 2])
    match(cache, [100, 101])
    cache.evict(EvictParams(num_tokens=1))
    assert match(cache, [1, 2]).device_prefix_len == 2, "the tail 102, 103 was used before 1, 2, and outlived them"


def test_split_is_new():
    """Policy fifo evicts the oldest tokens first; a lookup "does not duplicate data" and creates none."""
    cache, allocator = make_cache("fifo")
    insert(cache, allocator, [100, 101, 102, 103])
    insert(cache, allocator, [1, 2])
    match(cache, [100, 101])
    cache.evict(EvictParams(num_tokens=4))
    assert match(cache, [1, 2]).device_prefix_len == 2, "100, 101 are older than 1, 2, and outlived them"


def test_no_slots_aborts():
    """An empty tree has no values."""
    cache, _ = make_cache()
    assert len(cache.all_values_flatten()) == 0


def test_event_keys_lack_extra():
    """A prefix that was announced as removed is not hit."""
    cache, allocator = make_cache(events=True)
    insert(cache, allocator, [100, 101], "a")
    cache.take_events()
    insert(cache, allocator, [100, 101], "b")
    (stored,) = cache.take_events()
    cache.evict(EvictParams(num_tokens=1))
    (removed,) = cache.take_events()
    assert match(cache, [100, 101], "b").device_prefix_len == 2
    assert not set(stored.block_hashes) & set(removed.block_hashes), "announced as removed, and still held"


def test_tlru_aborts():
    """A policy that a cache accepts evicts."""
    cache, allocator = make_cache("tlru")
    insert(cache, allocator, [1, 2])
    assert cache.evict(EvictParams(num_tokens=2)).num_tokens_evicted == 2


def test_unlock_unguarded():
    """A locked node is not evicted: "Take a tree lock on `node` for one holder; `unlock` releases it"."""
    cache, allocator = make_cache()
    insert(cache, allocator, [1, 2])
    node = match(cache, [1, 2]).last_device_node
    try:
        cache.dec_lock_ref(node)
    except AssertionError:
        return
    cache.inc_lock_ref(node)  # a running request reads these slots
    cache.evict(EvictParams(num_tokens=2))
    assert match(cache, [1, 2]).device_prefix_len == 2, "slots of a locked node were freed"


def test_gone_nodes_locked():
    """The sum of evictable slots is that of the tree."""
    cache, allocator = make_cache()
    insert(cache, allocator, [1, 2])
    node = match(cache, [1, 2]).last_device_node
    cache.evict(EvictParams(num_tokens=2))
    try:
        cache.inc_lock_ref(node)
    except AssertionError:
        return
    assert cache.evictable_size() == 0


def test_frees_anything():
    """A slot has one owner."""
    _, allocator = make_cache(slots=4)
    slots = allocator.alloc(1)
    for _ in range(2):
        try:
            allocator.free(slots)
        except AssertionError:
            return
    owned = allocator.alloc(5)
    assert owned is None or len(set(owned.tolist())) == 5, "one slot was handed out twice"
