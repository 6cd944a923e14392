"""Tests that vLLM's prefix cache of hybrid models should pass. Those of 0.33.0 fail: docs/findings.md of kvoracle explains each.

They need vLLM alone, no GPU and no model: pytest findings/vllm
"""

import math
from types import SimpleNamespace

from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_planning import unify_hybrid_kv_cache_specs
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec, FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, MambaSpec, MLAAttentionSpec,
    SlidingWindowMLASpec, SlidingWindowSpec)
from vllm.v1.request import Request, RequestStatus

init_none_hash(sha256)
SHAPE = dict(num_kv_heads=1, head_size=1, dtype=None)


def full(block_size):
    return FullAttentionSpec(block_size=block_size, **SHAPE)


def window(block_size, sliding_window):
    return SlidingWindowSpec(block_size=block_size, sliding_window=sliding_window, **SHAPE)


def mamba(block_size, **options):
    return MambaSpec(block_size=block_size, shapes=((1,),), dtypes=(None,), mamba_cache_mode="align", **options)


def make_manager(num_blocks, specs, hash_block_size, retention=None, **options):
    groups = [KVCacheGroupSpec([f"layer.{i}"], spec) for i, spec in enumerate(specs)]
    config = KVCacheConfig(num_blocks=num_blocks, kv_cache_tensors=[], kv_cache_groups=groups,
                           prefix_cache_retention_interval=retention)
    return KVCacheManager(config, max_model_len=64, scheduler_block_size=math.lcm(*(spec.block_size for spec in specs)),
                          hash_block_size=hash_block_size, **options)


def make_request(request_id, prompt_token_ids, hash_block_size, **extra_args):
    params = SamplingParams(max_tokens=17)
    params.extra_args = extra_args
    return Request(request_id=request_id, prompt_token_ids=list(prompt_token_ids), sampling_params=params, pooling_params=None,
                   block_hasher=get_request_block_hasher(hash_block_size, sha256))


def run_step(manager, request, num_tokens, hit=None, num_hit_tokens=0):
    """What a step of the scheduler and the worker does with one chunk of one request."""
    manager.new_step_starts()
    blocks = manager.allocate_slots(request, num_tokens, num_hit_tokens, hit)
    assert blocks is not None
    _, retained = manager.take_kv_cache_block_copies()
    manager.block_pool.free_blocks(retained)
    request.num_computed_tokens += num_hit_tokens + num_tokens
    request.status = RequestStatus.RUNNING
    return blocks


def test_state_behind_branch():
    """Prompts that share a prefix reuse it (docs/features/automatic_prefix_caching.md), or a figure says that they do not."""
    manager = make_manager(40, [full(4), mamba(4)], 4, retention=0, log_stats=True)
    first = make_request("0", range(100, 130), 4)
    run_step(manager, first, 28)
    run_step(manager, first, 2)
    manager.free(first)

    second = make_request("1", [*range(100, 124), *range(7)], 4)
    _, num_hit_tokens, boundary = manager.get_computed_blocks(second)
    manager.record_prefix_cache_stats(second, num_hit_tokens)
    stats = manager.make_prefix_cache_stats()
    figures = {name: value for name, value in vars(stats).items() if name not in ("requests", "queries", "reset") and value}
    assert num_hit_tokens or figures, f"24 tokens are shared, attention holds {boundary} of them, and no figure says so"


def test_window_below_last_block():
    """ "retains only semantic checkpoints, including the latest replay boundary" (CacheConfig): a longer turn hits the prompt."""
    manager = make_manager(60, [full(8), window(4, 9)], 4, retention=0)
    first = make_request("0", range(100, 130), 4)
    run_step(manager, first, 30)
    manager.free(first)

    _, num_hit_tokens, _ = manager.get_computed_blocks(make_request("1", [*range(100, 123), 7, 7, 7], 4))
    assert num_hit_tokens == 16, f"23 tokens are shared, of which {num_hit_tokens} are hit"


def test_preempted_in_step():
    """A hit has only blocks that were computed ("Get the computed (cached) blocks for the request")."""
    manager = make_manager(24, [full(4), window(4, 5)], 4)
    request = make_request("0", range(100, 114), 4)
    run_step(manager, request, 4)
    manager.new_step_starts()
    manager.allocate_slots(request, 8)
    manager.free(request)  # Scheduler._preempt_request, before the step runs
    request.num_computed_tokens, request.status = 0, RequestStatus.PREEMPTED
    _, num_hit_tokens, _ = manager.get_computed_blocks(request)
    assert num_hit_tokens <= 4, f"4 tokens were computed, {num_hit_tokens} are hit"


def test_state_preempted_in_step():
    """The same with a state. The manager delays hits of new states by one step, which is too little."""
    manager = make_manager(24, [full(4), mamba(4)], 4)
    request = make_request("0", range(100, 114), 4)
    run_step(manager, request, 4)
    manager.new_step_starts()
    manager.allocate_slots(request, 8)
    manager.free(request)
    request.num_computed_tokens, request.status = 0, RequestStatus.PREEMPTED
    manager.new_step_starts()
    hit, num_hit_tokens, _ = manager.get_computed_blocks(request)
    adopted = manager.allocate_slots(request, 2, num_hit_tokens, hit)
    assert num_hit_tokens <= 4 or adopted is None, f"4 tokens were computed, {num_hit_tokens} are adopted"


def test_state_of_another_length():
    """A state is found under the key of as many tokens as it has seen: chunks are cut so that they end at its blocks.

    EngineCore._initialize_kv_caches sets cache_config.block_size to the least block size of all groups."""
    specs = [full(4), mamba(8)]
    manager = make_manager(60, specs, 4)
    scheduler = SimpleNamespace(
        cache_config=SimpleNamespace(block_size=min(spec.block_size for spec in specs)), block_size=8, hash_block_size=4,
        mamba_partial_cache_hit=manager.coordinator.enable_partial_hash_hits, use_eagle_block_drop=False,
        num_hash_lookahead_tokens=0, mamba_has_prefill_checkpoint_blocks=False, mamba_prefill_checkpoint_alignment=None,
        max_num_scheduled_tokens=12, scheduler_config=SimpleNamespace(long_prefill_token_threshold=0),
        mamba_shared_prefix_checkpoint=False)
    request = make_request("0", range(100, 130), 4)
    states = {}  # block: tokens that its state has seen
    for _ in range(2):
        num_tokens = Scheduler._mamba_block_aligned_split(scheduler, request, 12)
        run_step(manager, request, num_tokens)
        states[manager.get_block_ids("0")[1][-1]] = request.num_computed_tokens

    hit, num_hit_tokens, _ = manager.get_computed_blocks(make_request("1", [*range(100, 116), 7, 7, 7], 4))
    if num_hit_tokens:
        state = hit.get_block_ids()[1][-1]
        assert states[state] == num_hit_tokens, f"{num_hit_tokens} tokens are hit, with the state of {states[state]}"


def test_state_of_another_length_checkpoint():
    """The same where a chunk begins inside a block and has its checkpoint behind it: the copy that it starts from gets the
    key of the block's end."""
    manager = make_manager(60, [full(8), mamba(8, num_prefill_checkpoint_blocks=1, prefill_checkpoint_alignment=1)], 2)
    first = make_request("0", range(100, 113), 2)
    run_step(manager, first, 13)
    manager.free(first)

    second = make_request("1", range(100, 140), 2)
    hit, num_hit_tokens, _ = manager.get_computed_blocks(second)
    assert num_hit_tokens == 12  # inside the second block
    run_step(manager, second, 28, hit, num_hit_tokens)  # to the end, so no chunk ends at 16
    manager.free(second)
    manager.new_step_starts()
    _, num_hit_tokens, _ = manager.get_computed_blocks(make_request("2", [*range(100, 116), 7, 7, 7], 2))
    assert num_hit_tokens != 16, "a state of 16 tokens is hit; chunks and checkpoints ended at 12, 13, 38 and 40"


def test_loaded_state_uncounted():
    """allocate_slots returns None if the blocks are too few ("Cannot allocate new blocks")."""
    manager = make_manager(5, [full(8), mamba(8)], 8)
    request = make_request("0", range(100, 120), 8)
    manager.new_step_starts()
    assert manager.allocate_slots(request, 4, num_external_computed_tokens=16) is None


def test_report_of_partial_hit():
    """With kv_cache_report_mode "full" a hit is announced."""
    manager = make_manager(24, [full(8), mamba(8)], 2, enable_kv_cache_events=True)
    first = make_request("0", range(100, 113), 2)
    for num_tokens in (8, 4, 1):
        run_step(manager, first, num_tokens)
    manager.free(first)
    manager.get_computed_blocks(make_request("1", range(100, 113), 2, kv_cache_report_mode="full"))


def test_report_of_null_blocks():
    """What is announced as stored is held: hashes of null blocks are not."""
    manager = make_manager(24, [full(4), window(4, 5)], 4, enable_kv_cache_events=True)
    first = make_request("0", range(100, 114), 4)
    run_step(manager, first, 14)
    manager.free(first)
    manager.evict_blocks({manager.block_pool.get_cached_block(first.block_hashes[0], [1])[0].block_id})
    manager.take_events()
    manager.get_computed_blocks(make_request("1", range(100, 114), 4, kv_cache_report_mode="full"))
    for event in manager.take_events():
        for announced in event.block_hashes:
            at = [i for i, block_hash in enumerate(first.block_hashes) if block_hash == announced][0]
            assert manager.block_pool.get_cached_block(first.block_hashes[at], [event.group_idx]), (
                f"group {event.group_idx} announces block {at}, which it lost")


def test_dropped_twice():
    """ "drop the last matched block": under EAGLE a hit loses one unit of hits, here 8 tokens, not more."""
    manager = make_manager(40, [full(8), window(4, 30)], 4, use_eagle=True)
    first = make_request("0", range(100, 133), 4)
    run_step(manager, first, 33)
    manager.free(first)
    _, num_hit_tokens, _ = manager.get_computed_blocks(make_request("1", range(100, 117), 4))
    assert num_hit_tokens == 8, f"16 tokens are held by both groups, {num_hit_tokens} are hit"


def test_window_behind_loads():
    """A hit for a connector may run ahead of states, which the connector supplies; windows that lack rows are behind."""
    manager = make_manager(60, [full(4), mamba(4), window(4, 9)], 4)
    first = make_request("0", range(100, 126), 4)
    run_step(manager, first, 24)
    run_step(manager, first, 2)
    manager.free(first)
    manager.evict_blocks({manager.block_pool.get_cached_block(first.block_hashes[5], [2])[0].block_id})

    second = make_request("1", range(100, 134), 4)
    manager.new_step_starts()
    hit, num_local, _, _ = manager.get_computed_blocks_for_connector(second)
    needed = range((num_local - 8) // 4, num_local // 4)  # blocks of the last 8 tokens of the hit
    held = dict(enumerate(hit.get_block_ids()[2]))
    assert all(held.get(block) for block in needed), f"{num_local} tokens are hit, of the window {held}"


def test_odd_chunks():
    """A hit has all rows that the next token sees: those of its chunk of 13."""
    chunks = ChunkedLocalAttentionSpec(block_size=4, attention_chunk_size=13, **SHAPE)
    manager = make_manager(40, [full(4), chunks], 4)
    first = make_request("0", range(100, 117), 4)
    run_step(manager, first, 17)
    manager.free(first)
    manager.evict_blocks({manager.block_pool.get_cached_block(first.block_hashes[3], [1])[0].block_id})
    hit, num_hit_tokens, _ = manager.get_computed_blocks(make_request("1", range(100, 117), 4))
    first_seen = num_hit_tokens // 13 * 13
    blocks = hit.get_block_ids()[1]
    assert all(blocks[i] for i in range(first_seen // 4, num_hit_tokens // 4)), f"rows {first_seen} to {num_hit_tokens}: {blocks}"


def test_pop_mixes_groups():
    """Callers "must eventually free them in reverse order (so that tail blocks are evicted first)": as free does."""
    orders = []
    for deferred in (False, True):
        manager = make_manager(9, [full(4), window(4, 9)], 4)
        request = make_request("0", range(100, 108), 4)
        run_step(manager, request, 8)
        if deferred:
            manager.block_pool.free_blocks(reversed(manager.pop_blocks_for_free(request)))
        else:
            manager.free(request)
        orders.append([block.block_id for block in manager.block_pool.free_block_queue.get_all_free_blocks()])
    assert orders[0] == orders[1], f"free: {orders[0]}, pop: {orders[1]}"


def test_tails_unused():
    """A block gets a key so that it is found: not where hits end at blocks only."""
    manager = make_manager(24, [full(8), window(4, 9)], 4)
    first = make_request("0", range(100, 113), 4)
    run_step(manager, first, 13)
    first.append_output_token_ids([7, 7, 7, 7])
    run_step(manager, first, 4)
    assert manager.block_pool.get_cached_block(first.block_hashes[2], [0]) is None, (
        "hits end at multiples of 8, and a block is kept for a prompt of 12 tokens")


def test_setup_aborts():
    """A config that cannot be served is refused with a ValueError, as others are."""
    chunks = ChunkedLocalAttentionSpec(block_size=4, attention_chunk_size=8, **SHAPE)
    try:
        manager = make_manager(24, [full(4), chunks], 4, use_eagle=True)
    except ValueError:
        return
    first = make_request("0", range(100, 114), 4)
    run_step(manager, first, 14)
    manager.get_computed_blocks(make_request("1", range(100, 114), 4))


def test_mla_windows_abort():
    """Without the hybrid manager "it will convert all SlidingWindowSpec to FullAttentionSpec if both types are present"."""
    specs = {"full": MLAAttentionSpec(block_size=4, **SHAPE),
             "window": SlidingWindowMLASpec(block_size=4, sliding_window=8, **SHAPE)}
    unify_hybrid_kv_cache_specs(specs)
    assert type(specs["window"]) is MLAAttentionSpec
