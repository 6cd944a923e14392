"""A block manager of kind prefix.blocks: full attention, and the least recently used block goes first."""

import sys
from collections import OrderedDict

from kvoracle import NotSupported, Refused, serve

OPERATIONS = "request append set match allocate cache free table usage cached_tokens take release touch".split()

# Blocks have numbers of its own, and some configs are missing.
CONVENTIONS = [
    "own_blocks",
    "config attention only default",
    "config eagle only default",
    "config hash_lookahead only default",
    "config watermark only default",
]


class Request:
    def __init__(self, tokens, space, skips):
        self.tokens = list(tokens)
        self.space = space
        self.skips = skips
        self.keys = []
        self.table = []
        self.computed = 0
        self.registered = None  # blocks that were looked at for keys


class Manager:
    def __init__(self, config, profile, fault=""):
        if config.get("attention", "full") != "full" or config.get("eagle") or config.get("hash_lookahead"):
            raise NotSupported("full attention alone")
        if config.get("watermark") or config.get("retention") is not None:
            raise NotSupported("no watermark and no retention")
        self.blocks = config.get("num_blocks", 1)
        self.size = config.get("block_size", 1)
        self.longest = config.get("max_model_len", 0)
        self.caching = config.get("enable_caching", True)
        self.fault = fault
        self.free_blocks = OrderedDict((block, None) for block in range(self.blocks - 1, 0, -1))
        self.users = [0] * self.blocks
        self.key_of = [None] * self.blocks
        self.holders = {}  # blocks by key
        self.numbers = {}  # of keys
        self.depths = {}  # of keys, in blocks
        self.requests = {}

    # ---- requests and their keys ----

    def request(self, request, tokens, salt=None, lora=None, lora_path=None, skip_reading=None):
        before = self.requests.get(request)
        space = (salt or "", None if lora is None else (lora, lora_path or ""))
        made = self.requests[request] = Request(tokens, space, skip_reading or False)
        if before:
            made.table, made.registered = before.table, before.registered
        return {"keys": self.add_keys(made)}

    def append(self, request, tokens):
        own = self.find(request)
        own.tokens.extend(tokens)
        return {"keys": self.add_keys(own)}

    def set(self, request, computed=None, **_):
        own = self.find(request)
        own.computed = own.computed if computed is None else computed

    def add_keys(self, request):
        added = []
        while self.caching and (len(request.keys) + 1) * self.size <= len(request.tokens):
            block = len(request.keys)
            salt, lora = request.space
            content = (
                request.keys[-1] if block else None,
                tuple(request.tokens[block * self.size : (block + 1) * self.size]),
                salt if block == 0 else "",
                None if self.fault == "adapter_is_no_part_of_the_key" else lora,
            )
            request.keys.append(self.numbers.setdefault(content, len(self.numbers)))
            self.depths[request.keys[-1]] = block + 1
            added.append(request.keys[-1])
        return added

    def find(self, number):
        if number not in self.requests:
            raise Refused("precondition", f"request {number}")
        return self.requests[number]

    # ---- hits and slots ----

    def match(self, request, max_length=None):
        own = self.find(request)
        hits = []
        if self.caching and not own.skips:
            whole = 0 if self.fault == "whole_prompt_is_hit" else 1
            most = (len(own.tokens) - whole if max_length is None else max_length) // self.size
            for key in own.keys[: max(most, 0)]:
                if not self.holders.get(key):
                    break
                hits.append(self.holders[key][-1])
        return {"blocks": hits, "length": len(hits) * self.size}

    def allocate(
        self,
        request,
        tokens,
        hit_blocks=(),
        hit_tokens=0,
        external=0,
        lookahead=0,
        delay_caching=False,
        full_sequence=False,
        reserved=0,
        others_scheduled=True,
    ):
        own = self.find(request)
        self.check(hit_blocks)
        if tokens == 0 and hit_tokens == 0 and external == 0:
            raise Refused("precondition", "no token")
        if hit_tokens != len(hit_blocks) * self.size:
            raise Refused("precondition", "hit_tokens")
        if hit_blocks and (not self.caching or own.registered is not None):
            raise Refused("precondition", "hits of a request that has blocks")
        if (hit_blocks or external) and own.registered is None and own.table:
            raise Refused("precondition", "the request has blocks")
        for i, block in enumerate(hit_blocks):
            if block and (i >= len(own.keys) or self.key_of[block] != own.keys[i]):
                raise Refused("precondition", "stale hits")
        computed = own.computed + hit_tokens + external
        slots = min(min(computed, self.longest) + tokens + lookahead, self.longest)
        if full_sequence and not self.fits(own, hit_blocks, min(len(own.tokens), self.longest), 0):
            raise Refused("exhausted")
        if not self.fits(own, hit_blocks, slots, reserved):
            raise Refused("exhausted")
        evicted = []
        if own.registered is None and (hit_blocks or external):
            for block in hit_blocks:
                if block and self.fault != "hit_is_not_pinned":
                    self.pin(block)
            own.table, own.registered = list(hit_blocks), len(hit_blocks)
            if external:
                own.table += self.hand_out(self.ceil(computed) - len(own.table), evicted)
        new = self.hand_out(self.ceil(slots) - len(own.table), evicted)
        own.table += new
        if not delay_caching:
            self.hold(own, min(computed, self.longest) + tokens)
        return {"blocks": new, "evicted": evicted}

    def ceil(self, tokens):
        return -(-tokens // self.size)

    def fits(self, request, hits, tokens, reserved):
        need = self.ceil(tokens) - len(request.table)
        if request.registered is None:
            need = max(need - len(hits), 0) + sum(1 for block in hits if block and not self.users[block])
        return max(need, 0) <= len(self.free_blocks) - reserved

    def pin(self, block):
        if not self.users[block]:
            del self.free_blocks[block]
        self.users[block] += 1

    def hand_out(self, count, evicted):
        blocks = []
        for _ in range(max(count, 0)):
            block, _ = self.free_blocks.popitem(last=False)
            key, self.key_of[block] = self.key_of[block], None
            if key is not None:
                self.holders[key].remove(block)
                evicted.append(block)
            self.users[block] = 1
            blocks.append(block)
        return blocks

    def hold(self, request, tokens):
        end = min(min(tokens, len(request.tokens)) // self.size, len(request.keys))
        begin = request.registered or 0
        if end <= begin:
            return
        if end > len(request.table):
            raise Refused("precondition", "slots")
        request.registered = end
        for block, key in list(zip(request.table, request.keys))[begin:end]:
            if block and self.key_of[block] is None:
                self.key_of[block] = key
                self.holders.setdefault(key, []).append(block)

    def cache(self, request, tokens):
        self.hold(self.find(request), tokens)

    # ---- release ----

    def free(self, request):
        own = self.requests.get(request)
        if own:
            table, own.table, own.registered = own.table, [], None
            self.drop(reversed(table))

    def check(self, blocks):
        for block in blocks:
            if not 0 <= block < self.blocks:
                raise Refused("out_of_range", f"block {block}")

    def release(self, blocks):
        self.check(blocks)
        for block in blocks:
            if block and blocks.count(block) > self.users[block]:
                raise Refused("precondition", "users")
        self.drop(blocks)

    def drop(self, blocks):
        for block in blocks:
            if not block:
                continue
            self.users[block] -= 1
            if not self.users[block]:
                self.free_blocks[block] = None
                if self.key_of[block] is None or not self.caching:
                    self.free_blocks.move_to_end(block, last=False)  # it goes first

    def touch(self, blocks):
        self.check(blocks)
        for block in blocks:
            if block:
                self.pin(block)

    def take(self, count):
        if count > len(self.free_blocks):
            raise Refused("exhausted")
        evicted = []
        return {"blocks": self.hand_out(count, evicted), "evicted": evicted}

    # ---- queries ----

    def table(self, request):
        return {"blocks": self.requests[request].table if request in self.requests else []}

    def cached_tokens(self, request):
        keys = [self.key_of[block] for block in self.table(request)["blocks"]]
        depths = [self.depths[key] for key in keys if key is not None]
        return {"tokens": max(depths, default=0) * self.size}

    def usage(self):
        return {"usage": 1 - len(self.free_blocks) / (self.blocks - 1) if self.blocks > 1 else 0}


if __name__ == "__main__":
    fault = sys.argv[1] if len(sys.argv) > 1 else ""
    serve(
        {"prefix.blocks": lambda config, profile: Manager(config, profile, fault)},
        system="manager",
        version="1",
        operations={"prefix.blocks": OPERATIONS},
        conventions={"prefix.blocks": CONVENTIONS},
    )
