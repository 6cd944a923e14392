#!/usr/bin/env python3
"""tools/probe/serve_transformers.py MODEL: POST /v1/completions over the caches of transformers.

For `kvoracle probe check`: `transformers serve` shares no DynamicCache or StaticCache between requests. The answer is
the likeliest token each time. A prompt is a list of token ids, or text. Needs torch and transformers 5.

A request with `cache_prompt` false uses no rows of others, except with --paged.

DynamicCache, and StaticCache with --static:
- A request that is alone continues the stored cache with the longest common prefix: a copy of it, or the cache itself
  if the prefix is most of it; either is cropped.
- Requests that arrive together are one batch with left padding. With DynamicCache, each begins with the rows of its
  longest stored prefix. Rows of the batch are then stored one by one. With StaticCache, and with a sliding window,
  a batch shares nothing. A StaticCache serves one batch after the other.

With --paged: continuous batching, whose paged cache shares blocks of equal prefixes.
"""
import argparse
import copy
import http.server
import json
import os
import queue
import signal
import threading
import traceback

import torch
import transformers
from transformers import DynamicCache, StaticCache

TOGETHER_SECONDS = 0.01  # a batch waits so long for the next request


class Request:
    def __init__(self, body, tokenizer):
        prompt = body["prompt"]
        self.prompt = tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else prompt
        self.count = int(body.get("max_tokens", 16))
        self.shares = body.get("cache_prompt", True)
        self.tokens, self.failure, self.done = [], None, threading.Event()


def common_prefix(a, b):
    length = min(len(a), len(b))
    return next((i for i in range(length) if a[i] != b[i]), length)


class Generator:
    """Runs requests on a model, and stores their caches: (tokens, cache), the last used at the end."""

    def __init__(self, model, options):
        self.model, self.options, self.stored, self.batches = model, options, [], {}
        self.windowed = getattr(model.config, "sliding_window", None) is not None
        self.reused = 0

    def new_cache(self):
        if self.options.static:
            return StaticCache(config=self.model.config, max_cache_len=self.options.static)
        return DynamicCache(config=self.model.config)

    def best(self, request):
        """The stored entry with the longest common prefix, and how many rows of it fit."""
        if not request.shares or self.options.no_reuse or not self.stored:
            return None, 0
        entry = max(self.stored, key=lambda stored: common_prefix(stored[0], request.prompt))
        shared = common_prefix(entry[0], request.prompt) + self.options.stale_rows
        return entry, min(shared, len(entry[0]), len(request.prompt) - 1)

    def store(self, tokens, cache):
        self.stored = [*self.stored, (tokens, cache)][-self.options.stored:]

    @staticmethod
    def cropped(cache, rows):
        """Whether the last `rows` rows could be removed. StaticCache before transformers 5.24 removes none."""
        if rows and not cache.is_croppable:
            return False
        try:
            if rows:
                cache.crop(-rows)
            return True
        except RuntimeError:  # a full window of DynamicCache
            return False

    def forward(self, cache, tokens, mask, positions):
        """The likeliest next tokens, after all of `tokens` [batch, length] in parts of --chunk."""
        parts = self.options.chunk or tokens.shape[1]
        end = mask.shape[1] - tokens.shape[1]
        for begin in range(0, tokens.shape[1], parts):
            part = slice(begin, begin + parts)
            end += tokens[:, part].shape[1]
            logits = self.model(input_ids=tokens[:, part], attention_mask=mask[:, :end], past_key_values=cache,
                                position_ids=positions[:, part], use_cache=True, logits_to_keep=1).logits
        return logits[:, -1].float().argmax(-1, keepdim=True)

    def generate(self, requests, cache, prefixes, held):
        """Answers requests, of which the first `prefixes` tokens are in the cache, right-aligned in `held` rows."""
        device, rest = self.model.device, [r.prompt[p:] for r, p in zip(requests, prefixes)]
        width = max(map(len, rest))
        lefts = [width - len(tokens) for tokens in rest]
        tokens = torch.tensor([[0] * left + tokens for left, tokens in zip(lefts, rest)], device=device)
        mask = torch.tensor([[0] * (held - prefix) + [1] * prefix + [0] * left + [1] * (width - left)
                             for prefix, left in zip(prefixes, lefts)], device=device)
        positions = torch.tensor([[0] * left + list(range(prefix, len(request.prompt)))
                                  for request, prefix, left in zip(requests, prefixes, lefts)], device=device)
        for _ in range(max(request.count for request in requests)):
            tokens = self.forward(cache, tokens, mask, positions)
            for request, token in zip(requests, tokens[:, 0].tolist()):
                request.tokens.append(token)
            mask = torch.cat([mask, torch.ones_like(tokens)], 1)
            positions = positions[:, -1:] + 1
        return mask[:, :-1].bool()  # the last token has no row yet

    def run_alone(self, request):
        entry, rows = self.best(request)
        cache = None
        if rows:
            moves = 2 * rows >= len(entry[0]) or self.options.static
            cache = entry[1] if moves else copy.deepcopy(entry[1])
            if moves:
                self.stored = [stored for stored in self.stored if stored is not entry]
            if not self.cropped(cache, len(entry[0]) - rows):
                cache = None
        rows = rows if cache else 0
        cache = cache or self.new_cache()
        self.reused += rows
        self.generate([request], cache, [rows], rows)
        if request.shares:
            self.store(request.prompt + request.tokens[:-1], cache)

    def run_batch(self, requests):
        if self.options.static or self.windowed:
            cache = self.new_cache()
            if self.options.static:
                cache = self.batches.setdefault(len(requests), cache)
                cache.reset()
            self.generate(requests, cache, [0] * len(requests), 0)
            return
        found = [self.best(request) for request in requests]
        prefixes = [rows for _, rows in found]
        held, cache = max(prefixes), self.new_cache()
        self.reused += sum(prefixes)
        for layer in range(self.model.config.num_hidden_layers if held else 0):
            cache.update(*(torch.cat([self.aligned(entry, layer, side, rows, held) for entry, rows in found])
                           for side in ("keys", "values")), layer)
        mask = self.generate(requests, cache, prefixes, held)
        for at, request in enumerate(requests):
            if request.shares:
                one = self.new_cache()
                for number, layer in enumerate(cache.layers):
                    one.update(layer.keys[at:at + 1, :, mask[at]], layer.values[at:at + 1, :, mask[at]], number)
                one_tokens = request.prompt + request.tokens[:-1]
                self.store(one_tokens, one)

    def aligned(self, entry, layer, side, rows, held):
        """The first rows of a stored layer, after zeros: [1, heads, held, head_dim]."""
        stored = getattr((entry or self.stored[0])[1].layers[layer], side)
        zeros = stored.new_zeros(1, stored.shape[1], held - rows, stored.shape[3])
        return torch.cat([zeros, stored[:, :, :rows]], 2)

    @torch.no_grad()
    def run(self, requests):
        try:
            if len(requests) == 1:
                self.run_alone(requests[0])
            else:
                self.run_batch(requests)
        except Exception as failure:  # one bad request must not end the server
            for request in requests:
                request.failure = f"{type(failure).__name__}: {failure}"
            traceback.print_exc()
        for request in requests:
            request.done.set()


class Paged:
    """Runs requests by continuous batching."""

    def __init__(self, model, options):
        config = transformers.ContinuousBatchingConfig(
            block_size=options.block, num_blocks=options.paged, max_batch_tokens=options.chunk or 512,
            allow_block_sharing=not options.no_reuse)
        greedy = transformers.GenerationConfig(do_sample=False, eos_token_id=2, pad_token_id=0, max_new_tokens=16)
        self.manager = model.init_continuous_batching(generation_config=greedy, continuous_batching_config=config)
        self.asked, self.lock = {}, threading.Lock()
        self.manager.start()
        threading.Thread(target=self.deliver, daemon=True).start()

    def add(self, request):
        with self.lock:
            name = f"{len(self.asked)} {id(request)}"
            self.asked[name] = request
        self.manager.add_request(request.prompt, request_id=name, max_new_tokens=request.count)

    def deliver(self):
        for result in self.manager:
            request = self.asked.get(result.request_id)
            if request and (result.error or result.is_finished()):
                request.tokens, request.failure = list(result.generated_tokens), result.error
                with self.lock:
                    del self.asked[result.request_id]
                request.done.set()


def work(waiting, generator):
    while True:
        requests = [waiting.get()]
        try:
            while len(requests) < generator.options.batch and len({r.count for r in requests}) == 1:
                requests.append(waiting.get(timeout=TOGETHER_SECONDS))
        except queue.Empty:
            pass
        generator.run(requests)


def handler(add, tokenizer):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                request = Request(json.loads(self.rfile.read(int(self.headers["Content-Length"]))), tokenizer)
            except (KeyError, TypeError, ValueError) as failure:
                return self.answer(400, {"error": str(failure)})
            add(request)
            request.done.wait()
            if request.failure:
                return self.answer(500, {"error": request.failure})
            tokens = request.tokens[:request.count]
            return self.answer(200, {"choices": [{"token_ids": tokens, "text": tokenizer.decode(tokens)}]})

        def answer(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder that `kvoracle probe model` wrote")
    parser.add_argument("--port", type=int, default=8100, help="0: a free one, which the first line of output names")
    parser.add_argument("--device", default="cpu", help="cpu, cuda")
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16, float16, float32")
    parser.add_argument("--attention", default="sdpa", help="sdpa, eager")
    parser.add_argument("--static", type=int, metavar="TOKENS", help="StaticCache of that length")
    parser.add_argument("--paged", type=int, metavar="BLOCKS", help="a paged cache of so many blocks")
    parser.add_argument("--block", type=int, default=32, metavar="TOKENS", help="of a block of the paged cache")
    parser.add_argument("--chunk", type=int, metavar="TOKENS", help="at most so many tokens in one forward pass")
    parser.add_argument("--batch", type=int, default=8, help="most requests in a batch")
    parser.add_argument("--stored", type=int, default=8, help="most caches that are stored")
    parser.add_argument("--no-reuse", action="store_true", help="no request uses rows of others")
    parser.add_argument("--stale-rows", type=int, default=0, help="a fault: uses so many rows after a common prefix")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        options.model, dtype=getattr(torch, options.dtype), attn_implementation=options.attention)
    model = model.eval().to(options.device)
    if options.paged:
        generator, add = None, Paged(model, options).add
    else:
        generator, waiting = Generator(model, options), queue.Queue()
        threading.Thread(target=work, args=(waiting, generator), daemon=True).start()
        add = waiting.put
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    http.server.ThreadingHTTPServer.request_queue_size = 128
    server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), handler(add, tokenizer))
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    if generator:
        print(f"{generator.reused:,} rows were reused", flush=True)
    os._exit(0)  # threads of continuous batching do not end


if __name__ == "__main__":
    main()
