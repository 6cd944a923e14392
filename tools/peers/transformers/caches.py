"""DynamicCache and StaticCache of transformers, peers of tools/peers/run.

    caches.py append|copy dynamic|static

Does step by step what tools/peers/ours.cpp does, on one thread of a CPU, and prints the same line
of JSON. DynamicCache, which takes other memory for all its rows at each token, is timed for one pass.
"""
import json
import statistics
import sys
import time

import torch
from transformers import DynamicCache, LlamaConfig, StaticCache

LAYERS, TOKENS, HEADS, DIM, POSITIONS = 32, 512, 8, 128, 4095
WIDTH = HEADS * DIM
PASSES = {"dynamic": 1, "static": 5}


def values(layers, tokens):
    """What all programs write: [layers, side, tokens, WIDTH]."""
    layer, side, token, i = (torch.arange(n) for n in (layers, 2, len(tokens), WIDTH))
    token = torch.tensor(tokens)[token]
    return ((layer.view(-1, 1, 1, 1) * 977 + side.view(-1, 1, 1) * 389 + token.view(-1, 1) * 131 +
             i * 7) % 8191).float()


def make(name, layers, positions):
    if name == "dynamic":
        return DynamicCache()
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": HEADS, "hidden_size": WIDTH}
    return StaticCache(LlamaConfig(num_hidden_layers=layers, **heads), max_cache_len=positions)


def checksum(sides):
    """Of [1, HEADS, tokens, DIM] each."""
    total, index = 0, 0
    for side in sides:
        cells = side.transpose(1, 2).reshape(-1).long()
        weights = torch.arange(index, index + len(cells)) % 8191 + 1
        total += int((cells * weights).sum())
        index += len(cells)
    return total


def append(name):
    cache = make(name, LAYERS, TOKENS)
    rows = torch.zeros(LAYERS, 2, WIDTH)
    sides = [[side.view(1, HEADS, 1, DIM) for side in layer] for layer in rows]
    times = []
    for number in range(1 + PASSES[name]):
        cache.reset()
        for token in range(TOKENS):
            rows.copy_(values(LAYERS, [token])[:, :, 0])
            begin = time.perf_counter_ns()
            for layer, (k, v) in enumerate(sides):
                cache.update(k, v, layer)
            if number > 0:
                times.append(time.perf_counter_ns() - begin)
    return times, checksum([side for layer in cache.layers for side in (layer.keys, layer.values)])


def copy(name):
    """Into new tensors; a StaticCache of one position more than are held gathers them by head."""
    cache = make(name, 1, POSITIONS + 1)
    rows = values(1, range(POSITIONS))[0].view(2, 1, POSITIONS, HEADS, DIM).transpose(2, 3)
    cache.update(rows[0, :, :, :-1], rows[1, :, :, :-1], 0)
    cache.update(rows[0, :, :, -1:], rows[1, :, :, -1:], 0)
    layer = cache.layers[0]

    def taken():
        return [side[:, :, :POSITIONS].clone(memory_format=torch.contiguous_format)
                for side in (layer.keys, layer.values)]
    check = checksum(taken())
    times = []
    for _ in range(41):
        begin = time.perf_counter_ns()
        taken()
        times.append(time.perf_counter_ns() - begin)
    return times, check


def main():
    torch.set_num_threads(1)
    work, name = sys.argv[1:]
    with torch.inference_mode():
        times, check = {"append": append, "copy": copy}[work](name)
    print(json.dumps({"ns": statistics.median(times), "check": check}))


if __name__ == "__main__":
    main()
