"""A cache of kind layered.vector: two lists of rows for each layer."""

import copy
import sys

from kvoracle import NotSupported, Refused, Tensor, serve


class Cache:
    def __init__(self, layers: int, width: int) -> None:
        self.width = width
        self.rows = [([], []) for _ in range(layers)]
        self.tokens = 0


class Caches:
    """The caches of one case, by number."""

    def __init__(self, config: dict, profile: str, fault: str = "") -> None:
        if config.get("storage", "f32") != "f32":
            raise NotSupported("f32 alone")
        self.all: list[Cache] = []
        self.fault = fault

    def new(self, num_layers, num_kv_heads, head_dim, max_seq_len=0):
        width = num_kv_heads * head_dim
        if num_layers > 1 << 20 or width * max(max_seq_len, 1) > 1 << 40:
            raise Refused("precondition", "too large")
        self.all.append(Cache(num_layers, width))
        return {"cache": len(self.all) - 1}

    with_capacity = new

    def append(self, cache, layer, k, v):
        own = self.all[cache]
        if k.shape != (own.width,) or v.shape != (own.width,):
            raise Refused("bad_shape", f"rows have {own.width} elements")
        keys, values = self.layer(cache, layer)
        keys.append(k)
        values.append(k if self.fault == "stores_keys_as_values" else v)

    def advance(self, cache):
        own = self.all[cache]
        own.tokens += 1

    def k(self, cache, layer):
        return {"k": flat(self.layer(cache, layer)[0])}

    def v(self, cache, layer):
        return {"v": flat(self.layer(cache, layer)[1])}

    def len(self, cache):
        return {"len": self.all[cache].tokens}

    def is_empty(self, cache):
        return {"is_empty": self.all[cache].tokens == 0}

    def num_layers(self, cache):
        return {"num_layers": len(self.all[cache].rows)}

    def entry_size(self, cache):
        return {"entry_size": self.all[cache].width}

    def clear(self, cache):
        own = self.all[cache]
        own.rows = [([], []) for _ in own.rows]
        own.tokens = 0

    def clone(self, cache):
        self.all.append(copy.deepcopy(self.all[cache]))
        return {"cache": len(self.all) - 1}

    def clone_from(self, cache, source):
        self.all[cache] = copy.deepcopy(self.all[source])

    def layer(self, cache, number):
        if number >= len(self.all[cache].rows):
            raise Refused("out_of_range", f"layer {number}")
        return self.all[cache].rows[number]


def flat(rows):
    joined = Tensor.stacked(rows, (0,))
    return Tensor((len(joined.bits),), joined.bits)


if __name__ == "__main__":
    fault = sys.argv[1] if len(sys.argv) > 1 else ""
    serve(
        {"layered.vector": lambda config, profile: Caches(config, profile, fault)},
        system="lists",
        version="1",
        operations={
            "layered.vector": (
                "new with_capacity append advance k v len is_empty num_layers entry_size clear "
                "clone clone_from"
            ).split()
        },
    )
