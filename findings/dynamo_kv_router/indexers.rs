//! dynamo-kv-router 1.6.1: what its indexers do with events that engines send. A test fails where a promise does not hold. To be
//! run as tests/indexers.rs of a crate that depends on dynamo-kv-router and tokio.

use dynamo_kv_router::indexer::ThreadPoolIndexer;
use dynamo_kv_router::protocols::*;
use dynamo_kv_router::zmq_wire::{BlockHashValue, RawKvEvent, ZmqEventNormalizer};
use dynamo_kv_router::{ConcurrentRadixTreeCompressed, RadixTree};

fn event(worker: u64, data: KvCacheEventData) -> RouterEvent {
    RouterEvent::new(worker, KvCacheEvent { event_id: 0, data, dp_rank: 0 })
}

/// Blocks of one token, as (key, token) from the start of a prompt of an adapter.
fn stored(worker: u64, blocks: &[(u64, u32)], adapter: Option<&str>) -> RouterEvent {
    let tokens: Vec<u32> = blocks.iter().map(|(_, token)| *token).collect();
    let blocks = blocks
        .iter()
        .zip(hashes(&tokens, adapter))
        .map(|((key, _), tokens_hash)| KvCacheStoredBlockData {
            block_hash: ExternalSequenceBlockHash(*key),
            tokens_hash,
            mm_extra_info: None,
        })
        .collect();
    event(worker, KvCacheEventData::Stored(KvCacheStoreData { parent_hash: None, start_position: None, blocks }))
}

fn hashes(tokens: &[u32], adapter: Option<&str>) -> Vec<LocalBlockHash> {
    compute_block_hash_for_seq(tokens, 1, BlockHashOptions { lora_name: adapter, ..Default::default() })
}

fn blocks(scores: &OverlapScores, worker: u64) -> u32 {
    scores.scores.get(&WorkerWithDpRank::from_worker_id(worker)).copied().unwrap_or(0)
}

/// SGLang's keys do not hold the adapter unless it runs with Dynamo's format: a key names a block in two namespaces. The engine
/// clears its cache, then another one stores a prompt that leaves the first one's on the way.
#[test]
fn radix_survives_keys_in_two_namespaces() {
    let mut tree = RadixTree::new();
    tree.apply_event(stored(0, &[(1, 11), (2, 21)], Some("a"))).unwrap();
    tree.apply_event(stored(0, &[(1, 11), (2, 21)], Some("b"))).unwrap();
    tree.apply_event(event(0, KvCacheEventData::Cleared)).unwrap();
    tree.apply_event(stored(1, &[(1, 11), (3, 31)], Some("a"))).unwrap();
}

/// "Remove all KV ownership for the emitting `(worker_id, dp_rank)`", says `KvCacheEventData::Cleared`.
#[test]
fn radix_clears_all_of_a_worker() {
    let mut tree = RadixTree::new();
    tree.apply_event(stored(0, &[(1, 11), (2, 21)], Some("a"))).unwrap();
    tree.apply_event(stored(0, &[(1, 11), (2, 21)], Some("b"))).unwrap();
    tree.apply_event(event(0, KvCacheEventData::Cleared)).unwrap();
    assert_eq!(blocks(&tree.find_matches(hashes(&[11, 21], Some("a")), false), 0), 0, "blocks of a cleared worker");
}

/// Two engines with hash seeds of their own. The second has one block more of the same prompt. The tree for one thread takes it.
#[test]
fn crtc_takes_what_radix_takes() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let indexer = ThreadPoolIndexer::new(ConcurrentRadixTreeCompressed::new(), 1, 1);
    let mut tree = RadixTree::new();
    for one in [stored(0, &[(1, 11), (2, 21)], None), stored(1, &[(5, 11), (6, 21), (7, 31)], None)] {
        let taken = runtime.block_on(indexer.apply_event_and_wait(one.clone()));
        assert_eq!(taken.is_ok(), tree.apply_event(one).is_ok(), "whether the event is applied, here and in RadixTree");
    }
}

fn raw_stored(key: u64, parent: Option<u64>, salt: Option<&str>, medium: &str) -> RawKvEvent {
    RawKvEvent::BlockStored {
        block_hashes: vec![BlockHashValue::Unsigned(key)],
        parent_block_hash: parent.map(BlockHashValue::Unsigned),
        token_ids: vec![11],
        block_size: 1,
        medium: Some(medium.to_string()),
        lora_name: None,
        cache_namespace: salt.map(str::to_owned),
        block_mm_infos: None,
        is_eagle: None,
        group_idx: None,
        kv_cache_spec_kind: None,
        kv_cache_spec_sliding_window: None,
        locality: None,
        ownership: None,
        session_id: None,
    }
}

/// "Later salted GPU children keep inheriting it", says a test of the crate, of a hash that other tiers name. An engine removes
/// its copy on the host, and still has the block on the device.
#[test]
fn children_inherit_a_salt_without_a_copy_on_the_host() {
    let worker = WorkerWithDpRank::from_worker_id(0);
    let mut normalizer = ZmqEventNormalizer::new(1);
    for medium in ["GPU", "CPU"] {
        normalizer.preprocess(raw_stored(1, None, Some("tenant"), medium), worker).unwrap();
    }
    let removed = RawKvEvent::BlockRemoved {
        block_hashes: vec![BlockHashValue::Unsigned(1)],
        medium: Some("CPU".to_string()),
        group_idx: None,
        kv_cache_spec_kind: None,
        kv_cache_spec_sliding_window: None,
        locality: None,
        ownership: None,
    };
    normalizer.preprocess(removed, worker).unwrap();
    let Some(RawKvEvent::BlockStored { cache_namespace, .. }) = normalizer.preprocess(raw_stored(2, Some(1), None, "GPU"), worker)
    else {
        panic!("the child is dropped");
    };
    assert_eq!(cache_namespace.as_deref(), Some("tenant"), "the salt of the parent, which is on the device");
}
