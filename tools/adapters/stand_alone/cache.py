"""A cache that knows nothing of kvoracle. With FAULT in the environment it stores keys as values."""

import os
from array import array


class Cache:
    def __init__(self, config, profile):
        self.all = []

    def new(self, num_layers, num_kv_heads, head_dim, max_seq_len=0):
        self.all.append([(array("f"), array("f")) for _ in range(num_layers)])
        return {"cache": len(self.all) - 1}

    with_capacity = new

    def append(self, cache, layer, k, v):
        keys, values = self.all[cache][layer]
        keys.extend(k.values)
        values.extend((k if os.environ.get("FAULT") else v).values)

    def k(self, cache, layer):
        return {"k": memoryview(self.all[cache][layer][0])}

    def v(self, cache, layer):
        return {"v": memoryview(self.all[cache][layer][1])}
