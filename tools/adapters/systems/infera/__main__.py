"""The Python router of Infera, unchanged, on kind infera of contract events: one method for each operation.

Its client of KV events has subscribers, of which only the sockets are not real: the adapter gives them the messages. Answers are
counted by its policy.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any

import msgspec

from kvoracle import Refused, Unsupported, serve
from kvoracle.systems.infera.engine import load

VERSION = load()
from infera.common.worker_pool import EngineType, WorkerInfo  # noqa: E402
from infera.router.kv_event.block_hasher import BlockHasher  # noqa: E402
from infera.router.kv_event.client import KvEventClient  # noqa: E402
from infera.router.kv_event.hasher import hash_request  # noqa: E402
from infera.router.policy.kv_event_aware import KvEventAwarePolicy  # noqa: E402
from infera.router.policy.target import expand_targets  # noqa: E402

LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(LOOP)
RANKS = 4
"""Of a worker that is multiplexed."""
FIRST_PORT = 5557


def turn() -> None:
    """One turn of the loop: each subscriber that has a message takes it, and waits for the next."""
    LOOP.call_soon(LOOP.stop)
    LOOP.run_forever()


class Socket:
    """A subscriber's socket without a network."""

    def __init__(self) -> None:
        self.messages: collections.deque[list[bytes]] = collections.deque()
        self.waiting: asyncio.Future[None] | None = None
        self.endpoint = self.topic = ""

    def connect(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def subscribe(self, topic: bytes) -> None:
        self.topic = topic.decode()

    def close(self, linger: int) -> None:
        self.endpoint = ""

    async def recv_multipart(self) -> list[bytes]:
        if not self.messages:
            self.waiting = LOOP.create_future()
            await self.waiting
        return self.messages.popleft()

    def give(self, seq: int, payload: bytes) -> None:
        self.messages.append([self.topic.encode(), seq.to_bytes(8, "big"), payload])
        if self.waiting is None:
            raise RuntimeError("the subscriber does not receive")
        waiting, self.waiting = self.waiting, None
        waiting.set_result(None)
        turn()
        if self.waiting is None or not self.endpoint:
            raise RuntimeError("the subscriber failed at a message")


class Sockets:
    """In the place of a context of ZMQ."""

    def __init__(self) -> None:
        self.made: list[Socket] = []

    def socket(self, kind: int) -> Socket:
        self.made.append(Socket())
        return self.made[-1]


def bits(key: int) -> int:
    """The 64 bits of a key: distinct, never 0."""
    mixed = (key + 0x9E3779B97F4A7C15) & (1 << 64) - 1
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
    return (mixed ^ mixed >> 31) or 1


def fields_of(event: dict[str, Any], dialect: str, block_size: int) -> tuple[str, dict[str, Any]]:
    """The type of an event and its fields, in their order. Lists that are left out are empty."""
    if event["kind"] == "cleared":
        return "AllBlocksCleared", {}
    fields: dict[str, Any] = {"block_hashes": [*map(bits, event.get("keys", []))]}
    if event["kind"] == "stored":
        parent = event.get("parent")
        fields |= {"parent_block_hash": None if parent is None else bits(parent), "token_ids": event.get("tokens", []),
                   "block_size": event.get("block_size", block_size), "lora_id": None}
    fields["medium"] = event.get("medium")
    if dialect == "vllm":
        if event["kind"] == "stored":
            fields |= {"lora_name": event.get("lora"), "extra_keys": None}
        fields["group_idx"] = event.get("group")
        if event["kind"] == "stored":
            fields["kv_cache_spec_kind"] = event.get("spec")
    return {"stored": "BlockStored", "removed": "BlockRemoved"}[event["kind"]], fields


class Follower:
    """One case."""

    def __init__(self, config: dict[str, Any], profile: str) -> None:
        self.block_size = config["block_size"]
        self.dialect = config.get("engine", "vllm")
        self.wire = config.get("wire", "map")
        self.multiplexed = config.get("multiplexed", False)
        self.client = KvEventClient()
        self.client._ctx.term()
        self.sockets = self.client._ctx = Sockets()
        self.policy = KvEventAwarePolicy(self.client, BlockHasher())
        self.workers: dict[int, WorkerInfo] = {}
        self.published: dict[tuple[int, int], list[bytes]] = collections.defaultdict(list)

    def __del__(self) -> None:
        for worker in list(self.workers):
            self._remove(worker)

    def _add(self, number: int) -> None:
        """The router hears of a worker."""
        async def added() -> None:
            self.client.on_worker_added(worker)
        worker = self.workers[number] = WorkerInfo(
            worker_id=str(number), url="", model_name="model", engine=EngineType(self.dialect), kv_block_size=self.block_size,
            kv_events_endpoint=f"tcp://{number}:{FIRST_PORT}", dp_size=RANKS if self.multiplexed else None)
        LOOP.run_until_complete(added())
        turn()

    def _remove(self, number: int) -> None:
        if self.workers.pop(number, None):
            self.client.on_worker_removed(str(number))
            turn()

    def _deliver(self, worker: int, rank: int, seq: int, payload: bytes) -> None:
        if self.multiplexed and rank >= RANKS:
            raise Unsupported
        if worker not in self.workers:
            self._add(worker)
        endpoint = f"tcp://{worker}:{FIRST_PORT + (rank if self.multiplexed else 0)}"
        (socket,) = (each for each in self.sockets.made if each.endpoint == endpoint)
        socket.give(seq, payload)

    def _payload(self, rank: int, events: list[dict[str, Any]]) -> bytes:
        """A batch as engines publish it (EV-25)."""
        written: list[Any] = []
        for event in events:
            tag, fields = fields_of(event, self.dialect, self.block_size)
            written.append({"type": tag, **fields} if self.wire == "map" else [tag, *fields.values()])
        return msgspec.msgpack.encode([0.0, written, rank])

    def _now(self, kind: str, worker: int, rank: int, **event: Any) -> None:
        self._deliver(worker, rank, 0, self._payload(rank, [{"kind": kind, **event}]))

    def stored(self, worker: int, rank: int = 0, **event: Any) -> None:
        self._now("stored", worker, rank, **event)

    def removed(self, worker: int, rank: int = 0, **event: Any) -> None:
        self._now("removed", worker, rank, **event)

    def cleared(self, worker: int, rank: int = 0) -> None:
        self._now("cleared", worker, rank)

    def publish(self, worker: int, events: list[dict[str, Any]], rank: int = 0) -> dict[str, int]:
        batches = self.published[worker, rank]
        batches.append(self._payload(rank, events))
        return {"seq": len(batches) - 1}

    def deliver(self, worker: int, seq: int, rank: int = 0) -> dict[str, bool]:
        batches = self.published[worker, rank]
        if not 0 <= seq < len(batches):
            raise Refused("out_of_range", f"seq: {seq}")
        self._deliver(worker, rank, seq, batches[seq])
        return {"applied": True}

    def restart(self, worker: int, rank: int = 0) -> None:
        self.published.pop((worker, rank), None)

    def leave(self, worker: int, rank: int | None = None) -> None:
        if self.multiplexed and rank is not None:
            raise Unsupported  # a worker leaves with all its ranks
        self._remove(worker)

    resubscribe = leave
    """The next message adds the worker again."""

    def query(self, tokens: list[int], lora: str | None = None, salt: str | None = None) -> dict[str, Any]:
        matches = []
        hashes = hash_request(tokens, self.block_size)
        for number in sorted(self.workers):
            worker = self.workers[number]
            for target in expand_targets([worker]):
                hits = self.policy._cache_hits(target, {(worker.engine, worker.kv_block_size): hashes})
                if hits:
                    rank = {} if target.dp_rank is None else {"rank": target.dp_rank}
                    matches.append({"worker": number, **rank, "blocks": hits})
        return {"matches": matches}

    def size(self) -> dict[str, int]:
        targets = expand_targets(list(self.workers.values()))
        return {"blocks": sum(len(self.client.cache_view(each.worker.worker_id, each.dp_rank)) for each in targets)}


serve({"events.infera": Follower}, system="infera", version=VERSION)
