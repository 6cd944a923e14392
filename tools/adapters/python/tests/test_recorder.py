"""What a recorded class does is a log that the harness can read."""

import json
import os
import tempfile
import unittest

from kvoracle import Refused, Tensor, record

LOG = os.path.join(tempfile.mkdtemp(), "log.jsonl")


@record("layered.vector", LOG, system="test", config=lambda cache: {"build": cache.build})
class Cache:
    def __init__(self, build):
        self.build = build
        self.rows = []

    def new(self, num_layers, num_kv_heads, head_dim):
        self.clear(0)
        return {"cache": 0}

    def append(self, cache, layer, k, v):
        if layer > 0:
            raise Refused("out_of_range", "layer")
        self.rows.append(k)

    def k(self, cache, layer=0):
        return {"k": self.rows[-1]}

    def clear(self, cache):
        self.rows.clear()


class RecorderTest(unittest.TestCase):
    def test_calls_become_lines(self):
        cache = Cache("release")
        cache.new(1, 1, head_dim=2)
        row = Tensor.of([2], [1, 2])
        cache.append(0, 0, row, v=row)
        with self.assertRaises(Refused):
            cache.append(0, 1, row, row)
        self.assertEqual(cache.k(0, 0)["k"], row)
        cache.close_record()
        with open(LOG, encoding="utf-8") as log:
            header, *lines = map(json.loads, log)
        self.assertEqual((header["contract"], header["cache"]), ("layered", "vector"))
        self.assertEqual(header["config"], {"build": "release"})
        self.assertEqual([line["op"] for line in lines], ["new", "append", "append", "k"])
        text = {"shape": [2], "data": [1.0, 2.0]}
        self.assertEqual(lines[1]["args"], {"cache": 0, "layer": 0, "k": text, "v": text})
        self.assertEqual(lines[2]["ret"], {"error": "out_of_range"})
        self.assertEqual(lines[3]["ret"], {"k": text})


if __name__ == "__main__":
    unittest.main()
