"""vLLM's KVCacheManager, a peer of tools/peers/run.

    blocks.py FOLDER request|life BLOCKS
    blocks.py FOLDER steps

Does step by step what tools/peers/ours_prefix.cpp does with the vLLM in FOLDER, keys by sha256, the
default, and prints the same line of JSON.
"""
import json
import pathlib
import statistics
import sys
import time

PEERS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PEERS), str(PEERS.parent / "adapters" / "python" / "src")]
import work  # noqa: E402
from kvoracle.systems import stand_in  # noqa: E402

stand_in.only("vllm", sys.argv[1],
              ["vllm.v1.core.", "vllm.v1.request", "vllm.v1.kv_cache_", "vllm.v1.metrics.stats",
               "vllm.v1.utils", "vllm.utils.hashing", "vllm.utils.math_utils"])
import vllm.v1.request  # noqa: E402
from vllm.utils.hashing import sha256  # noqa: E402
from vllm.v1.core.kv_cache_manager import KVCacheManager  # noqa: E402
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash  # noqa: E402
from vllm.v1.kv_cache_interface import (  # noqa: E402
    FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec)
from vllm.v1.request import Request, RequestStatus  # noqa: E402

vllm.v1.request.length_from_prompt_token_ids_or_embeds = lambda tokens, embeds: len(tokens)
init_none_hash(sha256)

SIZE, LONG, TURNS, PROMPT, MOST = 16, 10_000, 64, 2_048, 4_096
hasher = get_request_block_hasher(SIZE, sha256)


class Sampling:
    max_tokens, extra_args, structured_outputs, prompt_logprobs = 1 << 20, None, None, None
    skip_reading_prefix_cache = False


def request(number, tokens):
    return Request(str(number), tokens, Sampling(), None, block_hasher=hasher)


def make(blocks):
    spec = FullAttentionSpec(block_size=SIZE, num_kv_heads=1, head_size=1, dtype=None)
    config = KVCacheConfig(num_blocks=blocks + 1, kv_cache_tensors=[],
                           kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    return KVCacheManager(config, max_model_len=1 << 20, scheduler_block_size=SIZE,
                          hash_block_size=SIZE, max_in_flight_tokens=1 << 20)


def allot(manager, its, length):
    blocks, hit, _ = manager.get_computed_blocks(its)
    new = manager.allocate_slots(its, length - hit, hit, blocks)
    return blocks, new


def requests(blocks, whole_life):
    manager = make(blocks)
    count = blocks // (LONG // SIZE)
    apart, turns = max(count // TURNS, 1), min(count, TURNS)
    known = []
    for i in range(count):
        its = request(i, work.tokens_of(i, LONG))
        allot(manager, its, LONG)
        manager.free(its)
        if i % apart == 0 and len(known) < turns:
            known.append(request(i, work.tokens_of(i, LONG)))
    read, times = work.Sum(), []
    for number in range(4):
        for at, its in enumerate(known):
            tokens = its.all_token_ids[:]
            begin = time.perf_counter_ns()
            if whole_life:
                its = request(at, tokens)
            hit, new = allot(manager, its, LONG)
            manager.free(its)
            spent = time.perf_counter_ns() - begin
            if number > 0:
                times.append(spent)
                continue
            for blocks in (hit, new):
                read.add(block.block_id for block in blocks.blocks[0])
    return times, read


def steps():
    manager = make(TURNS * MOST // SIZE)
    read, times = work.Sum(), []
    for number in range(3):
        running = [request(i, work.tokens_of(i, PROMPT)) for i in range(TURNS)]
        for its in running:
            allot(manager, its, PROMPT)
            its.num_computed_tokens, its.status = PROMPT, RequestStatus.RUNNING
        for length in range(PROMPT + 1, MOST + 1):
            new = []
            begin = time.perf_counter_ns()
            for its in running:
                its.append_output_token_ids(7)
                new.append(manager.allocate_slots(its, 1))
                its.num_computed_tokens = length
            spent = time.perf_counter_ns() - begin
            if number > 0:
                times.append(spent)
                continue
            for blocks in new:
                read.add(block.block_id for block in blocks.blocks[0])
        for its in running:
            manager.free(its)
    return times, read


def main():
    name, more = sys.argv[2], sys.argv[3:]
    times, read = steps() if name == "steps" else requests(int(more[0]), name == "life")
    print(json.dumps({"ns": statistics.median(times), "check": read.value}))


if __name__ == "__main__":
    main()
