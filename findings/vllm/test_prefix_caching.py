"""Tests that vLLM's prefix cache should pass. Those of 0.33.0 fail: docs/findings.md of kvoracle explains each.

They need vLLM alone, no GPU and no model: pytest findings/vllm
"""

from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.block_pool import BlockPool
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, SlidingWindowSpec
from vllm.v1.request import Request

BLOCK_SIZE = 4
init_none_hash(sha256)


def make_request(request_id, prompt_token_ids):
    return Request(request_id=request_id, prompt_token_ids=list(prompt_token_ids), sampling_params=SamplingParams(max_tokens=17),
                   pooling_params=None, block_hasher=get_request_block_hasher(BLOCK_SIZE, sha256))


def make_manager(num_blocks, sliding_window=None, **options):
    shape = dict(block_size=BLOCK_SIZE, num_kv_heads=1, head_size=1, dtype=None)
    spec = SlidingWindowSpec(sliding_window=sliding_window, **shape) if sliding_window else FullAttentionSpec(**shape)
    config = KVCacheConfig(num_blocks=num_blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    return KVCacheManager(config, max_model_len=64, scheduler_block_size=BLOCK_SIZE, hash_block_size=BLOCK_SIZE, **options)


def test_stale_hits_adopted():
    """A block with a reference count above 0 is not allocated again (docs/design/prefix_caching.md, of touch)."""
    manager = make_manager(num_blocks=6)
    running, first = make_request("0", range(4)), make_request("1", range(100, 108))
    manager.allocate_slots(running, 4)
    manager.allocate_slots(first, 8)
    manager.free(first)

    waiting = make_request("2", range(100, 109))
    hit, num_hit_tokens, _ = manager.get_computed_blocks(waiting)
    assert num_hit_tokens == 8
    assert manager.allocate_slots(make_request("3", range(500, 512)), 12) is not None  # takes the last block of the hit
    manager.free(running)
    manager.allocate_slots(waiting, 1, num_hit_tokens, hit)

    shared = set(manager.get_block_ids("2")[0]) & set(manager.get_block_ids("3")[0])
    assert not shared, f"requests with different prompts own the blocks {shared}"


def test_no_prompt_aborts():
    """The lookup returns the longest cached prefix, which is empty here."""
    manager = make_manager(num_blocks=8)
    blocks, num_tokens, _ = manager.get_computed_blocks(make_request("0", []))
    assert num_tokens == 0


def test_looks_beyond_keys():
    """ "Get the longest cache hit prefix of the blocks that is not longer than max_length" (find_longest_cache_hit)."""
    manager = make_manager(num_blocks=8, sliding_window=5)
    blocks, num_tokens, _ = manager.get_computed_blocks(make_request("0", range(100, 108)), 100)
    assert num_tokens == 0


def test_stored_span():
    """An event with tokens of blocks has the hashes of these blocks."""
    manager = make_manager(num_blocks=8, sliding_window=1, enable_kv_cache_events=True)
    manager.allocate_slots(make_request("0", range(100, 112)), 12)
    for event in manager.take_events():
        assert len(event.token_ids) == len(event.block_hashes) * event.block_size


def test_removed_while_held():
    """A prefix that was announced as removed is not hit."""
    manager = make_manager(num_blocks=8, enable_kv_cache_events=True)
    for name in "01":
        manager.allocate_slots(make_request(name, range(100, 105)), 5)
    manager.take_events()
    manager.evict_blocks({manager.get_block_ids("0")[0][0]})
    assert manager.take_events() == [] or manager.get_computed_blocks(make_request("2", range(100, 105)))[1] == 0


def test_counts_below_zero():
    """A block that is freed too often is refused where that happens, or the pool survives it."""
    pool = BlockPool(num_gpu_blocks=4, enable_caching=True, hash_block_size=BLOCK_SIZE)
    blocks = pool.get_new_blocks(1)
    pool.free_blocks(blocks)
    try:
        pool.free_blocks(blocks)
    except (AssertionError, ValueError):
        return
    pool.get_new_blocks(3)


def test_evict_takes_any_number():
    """ "workers should only report block IDs that were allocated by the scheduler" (evict_blocks)."""
    manager = make_manager(num_blocks=3)
    manager.allocate_slots(make_request("0", range(100, 108)), 8)
    try:
        manager.evict_blocks({-1})
    except AssertionError:
        pass
    assert manager.get_computed_blocks(make_request("1", range(100, 109)))[1] == 8, "block -1 was the last one"
