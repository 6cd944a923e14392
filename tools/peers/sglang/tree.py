"""SGLang's RadixCache over its paged allocator, a peer of tools/peers/run.

    tree.py FOLDER lookup|evict LEAVES

Does step by step what tools/peers/ours_prefix.cpp does with the SGLang in FOLDER, on one thread of a
CPU, and prints the same line of JSON.
"""
import json
import pathlib
import statistics
import sys
import time
from array import array

import torch

PEERS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PEERS), str(PEERS.parent / "adapters" / "python" / "src")]
import work  # noqa: E402
from kvoracle.systems import stand_in  # noqa: E402

stand_in.only("sglang", sys.argv[1],
              [f"sglang.srt.mem_cache.{name}" for name in (
                  "allocator", "base_prefix_cache", "cache_init_params", "events", "evict_policy",
                  "radix_cache", "utils")])
from sglang.srt.mem_cache import radix_cache  # noqa: E402
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator  # noqa: E402
from sglang.srt.mem_cache.base_prefix_cache import (  # noqa: E402
    EvictParams, InsertParams, MatchPrefixParams)
from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey  # noqa: E402

radix_cache.ceil_align = lambda number, unit: -(-number // unit) * unit
SIZE, LONG, LEAF = 16, 10_000, 160


class Tree:
    def __init__(self, leaves):
        self.pool = PagedTokenToKVPoolAllocator(leaves * LEAF + LONG, SIZE, torch.int64, "cpu",
                                                None, False)
        self.tree = RadixCache.create_simulated(mock_allocator=self.pool, page_size=SIZE)
        for number in range(leaves):
            self.insert(key(number, LEAF))

    def insert(self, its):
        slots = self.pool.alloc(len(its))
        self.tree.insert(InsertParams(key=its, value=slots))
        return slots


def key(number, count):
    return RadixKey(array("q", work.tokens_of(number, count)), None)


def lookup(leaves):
    made = Tree(leaves)
    its = key(leaves, LONG)
    made.insert(its)
    read, times = work.Sum(), []
    for number in range(201):
        begin = time.perf_counter_ns()
        hit = made.tree.match_prefix(MatchPrefixParams(key=its))
        slots = made.tree.path_device_indices(hit.last_device_node)
        made.tree.inc_lock_ref(hit.last_device_node)
        made.tree.dec_lock_ref(hit.last_device_node)
        spent = time.perf_counter_ns() - begin
        if number > 0:
            times.append(spent)
        else:
            read.add(slots.tolist())
    return times, read


def evict(leaves):
    made = Tree(leaves)
    while made.pool.alloc(SIZE) is not None:
        pass
    read, times = work.Sum(), []
    for number in range(2 * leaves):
        its = key(leaves + number, LEAF)
        begin = time.perf_counter_ns()
        made.tree.evict(EvictParams(num_tokens=1))
        slots = made.insert(its)
        spent = time.perf_counter_ns() - begin
        if number >= leaves:
            times.append(spent)
        else:
            read.add(slots.tolist())
    return times, read


def main():
    torch.set_num_threads(1)
    name, leaves = sys.argv[2], int(sys.argv[3])
    with torch.inference_mode():
        times, read = {"lookup": lookup, "evict": evict}[name](leaves)
    print(json.dumps({"ns": statistics.median(times), "check": read.value}))


if __name__ == "__main__":
    main()
