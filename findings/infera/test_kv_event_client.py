"""Infera at 5890f7f60750: what its client of KV events does with those of vLLM. A test fails where a promise does not hold. To be
run with the packages that Infera needs.
"""

from __future__ import annotations

from infera.router.kv_event.client import KvEventClient, WorkerSubscription
from infera.router.kv_event.events import BlockRemoved, BlockStored
from infera.router.kv_event.hasher import hash_request

BS = 4
TOKENS = list(range(2 * BS))


def _subscribed() -> tuple[KvEventClient, WorkerSubscription]:
    client = KvEventClient()
    sub = client._subs["w"] = WorkerSubscription(worker_id="w", endpoint="tcp://w:5557", block_size=BS)
    return client, sub


def _stored(hashes: list[int], tokens: list[int], group: int | None = None, kind: str | None = None) -> BlockStored:
    return BlockStored(block_hashes=hashes, parent_block_hash=None, token_ids=tokens, block_size=BS, lora_id=None, group_idx=group,
                       kv_cache_spec_kind=kind)


def _hits(client: KvEventClient, tokens: list[int]) -> int:
    view = client.cache_view("w")
    return next((n for n, block in enumerate(hash_request(tokens, BS)) if block not in view), len(tokens) // BS)


def test_removals_of_other_groups_leave_the_attention_group() -> None:
    """"Filtering on these two fields is what keeps the one usable stream intact" (events.BlockStored). vLLM's hash does not have
    the group, and its groups evict by themselves. BlockRemoved has no field for the group."""
    client, sub = _subscribed()
    client._handle_event(sub, _stored([1, 2], TOKENS, 0, "full_attention"))
    client._handle_event(sub, _stored([1, 2], TOKENS, 1, "sliding_window"))
    client._handle_event(sub, BlockRemoved(block_hashes=[1]))  # of group 1: the block has left the window
    hits = _hits(client, TOKENS)
    assert hits == 2, f"{hits} of the 2 blocks of the attention group, which removed none"


def test_blocks_without_hashes_can_be_removed() -> None:
    """"which under-reports hits instead of mis-reporting them" (KvEventClient._on_block_stored, of events with fewer hashes than
    blocks). The blocks enter the view, and no removal takes them out."""
    client, sub = _subscribed()
    client._handle_event(sub, _stored([2], TOKENS))
    client._handle_event(sub, BlockRemoved(block_hashes=[2]))
    hits = _hits(client, TOKENS)
    assert hits == 0, f"{hits} hits on blocks that the engine has evicted"


def test_a_block_is_held_until_its_last_hash_is_removed() -> None:
    """"Return the chained-hash set of a worker's cached blocks" (KvEventClient.cache_view). vLLM gives the same tokens another hash
    for each adapter and each salt. The view has one block for all of them, and the first removal takes it out."""
    client, sub = _subscribed()
    client._handle_event(sub, _stored([1, 2], TOKENS))
    client._handle_event(sub, _stored([11, 12], TOKENS))  # with another salt
    client._handle_event(sub, BlockRemoved(block_hashes=[12, 11]))
    hits = _hits(client, TOKENS)
    assert hits == 2, f"{hits} of 2 blocks, which the engine has without the salt"
