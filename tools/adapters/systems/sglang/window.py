"""SGLang's `PureSWARadixCache`, for models of which each layer has a window, contract `prefix.radix`:
`python3 -m kvoracle.systems.sglang.window`.

Requests alone drive it, in the order of SGLang's scheduler: a prompt is filed once, when it was extended, then the request decodes
one token at a time, and ends. What leaves the window is freed by the scheduler's own `maybe_evict_swa`. The reference has no
windows: the laws that need none judge it.
"""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kvoracle import NotSupported, Refused, serve
from kvoracle.systems.raised import panics
from kvoracle.systems.sglang.__main__ import SGLANG, Answer, CacheInitParams, Radix, schedule_batch, torch
from sglang.srt.mem_cache.allocator import swa
from sglang.srt.mem_cache.pure_swa_radix_cache import PureSWARadixCache
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType

WINDOW = 4
"""Tokens that a token sees before it. In models some hundred; SGLang frees when 128 have left it, here each one."""
setattr(schedule_batch.envs, "SGLANG_SWA_EVICTION_INTERVAL", SimpleNamespace(get=lambda: 1))
setattr(schedule_batch.envs, "SGLANG_OPT_RELEASE_PREFILL_SWA", SimpleNamespace(get=lambda: False))
swa.expect = lambda *_, **__: None  # its checks are off by default

BY_HAND = ["touch", "insert", "lock", "unlock", "reset", "all_slots", "alloc", "alloc_extend", "alloc_decode", "free", "free_segment",
           "group_begin", "group_end", "clear", "row"]
CONVENTIONS = [f"without {each}" for each in BY_HAND] + [
    "config page_size only default",  # SGLang's pool of windows alone has no pages
    "config eagle only default", "config disable only default",
    'config policy only default "lfu" "mru" "fifo" "filo" "priority" "slru"',
]


class Rows(swa.BaseSWAKVPool):  # type: ignore[misc]
    """The pool of rows, which the allocator hands its slots. There are none."""

    swa_kv_pool = None

    def __init__(self) -> None:
        """Without memory."""

    def register_mapping(self, full_to_swa_index_mapping: torch.Tensor) -> None:
        """Slots are those of the window."""

    def translate_loc_from_full_to_swa(self, kv_indices: torch.Tensor) -> torch.Tensor:
        return kv_indices

    def get_state_buf_infos(self) -> Any:
        return [], [], []


@panics
class Window(Radix):
    def __init__(self, config: Answer, profile: str) -> None:
        if config["page_size"] != 1 or config["eagle"] or config["disable"] or config["policy"] == "tlru":
            raise NotSupported("pages, pairs, a tree that keeps nothing, or policy tlru")
        super().__init__(config, profile)

    def _made_pool(self, size: int, slots: int, sort: bool) -> Any:
        return swa.PureSWATokenToKVPoolAllocator(slots, size, torch.int64, "cpu", Rows(), sort)

    def _lists(self) -> Any:
        return self._pool.swa_attn_allocator

    def _made(self, params: CacheInitParams) -> Any:
        params.sliding_window_size = WINDOW
        cache = PureSWARadixCache(params)
        return cache, cache

    def extend(self, request: int, tokens: int, append: list[int] | None = None) -> Answer:
        req = self._requests[request]
        if req.lock is None:
            raise Refused("precondition", "it is not admitted")
        if append and (len(append) > 1 or tokens != 1 or not self._is_filed(req)):
            raise Refused("precondition", "a request decodes one token at a time, and its prompt is filed before")
        if not append and (req.kv.kv_committed_len if req.kv.holds_kv else req.prefix_len) + tokens > req.seqlen:
            raise Refused("precondition", "only tokens are extended")
        self._decodes = bool(append)
        answer = super().extend(request=request, tokens=tokens, append=append)
        req.decode_batch_idx += 1 if append else 0
        return answer

    def admit(self, request: int) -> Answer:
        if self._requests[request].lock is not None:
            raise Refused("precondition", "it is admitted")
        return super().admit(request=request)

    def withdraw(self, request: int) -> None:
        self._in_state(request, has_row=False)
        super().withdraw(request=request)

    def finish(self, request: int, keep: bool = True) -> None:
        req = self._in_state(request, has_row=True)
        super().finish(request=request, keep=keep)
        req.reset_for_retract()  # it may be admitted again

    def _in_state(self, request: int, has_row: bool) -> schedule_batch.Req:
        """A request that is admitted, and has a row or none: no reference refuses the others here."""
        req = self._requests[request]
        if req.lock is None or req.kv.holds_kv != has_row:
            raise Refused("precondition", "it is not admitted, or its row")
        return req

    def _is_filed(self, req: schedule_batch.Req) -> bool:
        whole = req.kv.holds_kv and req.kv.kv_committed_len == req.seqlen
        return whole and (req.decode_batch_idx > 0 or req.kv.cache_inserted_len == req.seqlen)

    def _leave_window(self, req: schedule_batch.Req) -> Answer:
        batch, decodes = object.__new__(schedule_batch.ScheduleBatch), self._decodes
        batch.reqs, batch.tree_cache, batch.token_to_kv_pool_allocator = [req], self._tree, self._pool
        batch.forward_mode = SimpleNamespace(is_decode=lambda: decodes, is_extend=lambda: not decodes)
        batch.enable_overlap = False

        def freed_to() -> int:
            return max(req.kv.get_evicted_seqlen(ComponentType.SWA), req.kv.swa_dead_lo(1))
        before = freed_to()
        batch.maybe_evict_swa()
        after = freed_to()
        return {"left": self._rows[req.kv.req_pool_idx][before:after].tolist()} if after > before else {}

    def checkpoint(self, request: int) -> Answer:
        if self._in_state(request, has_row=True).decode_batch_idx > 0:
            raise Refused("precondition", "the scheduler files a request that decodes when it ends")
        return super().checkpoint(request=request)


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve({"prefix.radix": Window}, system="sglang PureSWARadixCache", version=SGLANG.version,
          conventions={"prefix.radix": CONVENTIONS})
