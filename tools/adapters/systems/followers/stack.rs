//! Kind `dynamo`: what the standalone indexer of dynamo-kv-router is made of: its decoder, normalizer, cursor, tree and lower
//! tiers. The loop of its listener (services/indexer/listener.rs) is repeated here, as it takes its messages from ZMQ alone.

use crate::indexers::cut;
use crate::operations::*;
use dynamo_kv_router::RadixTree;
use dynamo_kv_router::indexer::{
    KvIndexerInterface, LowerTierIndexers, LowerTierQueryOptions, query_lower_tiers_with_options,
};
use dynamo_kv_router::protocols::*;
use dynamo_kv_router::recovery::{CursorObservation, CursorState};
use dynamo_kv_router::zmq_wire::{ZmqEventNormalizer, decode_event_batch};
use kvoracle::{Arguments, Cache, Kind, Refusal, refuse};
use serde_json::json;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub const KIND: Kind = Kind {
    name: "events.dynamo",
    open,
    operations: &["publish", "deliver", "restart", "resubscribe", "query"],
    conventions: &[],
};

fn open(config: &Arguments, _: &str) -> Result<Box<dyn Cache>, String> {
    let block_size = setting(config, "block_size", 0)? as u32;
    let indexes = Indexes {
        device: RadixTree::new(),
        lower: LowerTierIndexers::new(1, block_size),
        runtime: tokio::runtime::Builder::new_current_thread().build().map_err(|why| why.to_string())?,
        ended: false,
    };
    let buffer = setting(config, "buffer", 10_000)? as usize;
    let replay = config.flag("replay", true);
    let (published, listeners) = (BTreeMap::new(), BTreeMap::new());
    Ok(Box::new(ByName(Stack { indexes, published, listeners, block_size, buffer, replay })))
}

/// What listeners feed (`Indexer::Single` of services/indexer/backend.rs).
struct Indexes {
    device: RadixTree,
    lower: LowerTierIndexers,
    runtime: tokio::runtime::Runtime,
    ended: bool,
}

impl Indexes {
    /// As `Indexer::apply_event_routed`. A panic of the tree ends the case (EV-58).
    fn apply(&mut self, event: RouterEvent) {
        let Ok(to_device) = event.targets_primary() else { return };
        let to_all = event.event.data == KvCacheEventData::Cleared;
        if to_device {
            let applied = catch_unwind(AssertUnwindSafe(|| self.device.apply_event(event.clone())));
            self.ended = self.ended || applied.is_err(); // other errors are logged alone
        }
        self.runtime.block_on(async {
            if to_all {
                for tier in self.lower.all() {
                    let _ = tier.apply_event_and_wait(event.clone()).await;
                }
            } else if !to_device {
                self.lower.get_or_create(event.storage_tier).apply_event(event).await;
            }
        });
    }

    fn remove(&mut self, worker: u64, rank: Option<u32>) {
        match rank {
            Some(rank) => self.device.remove_worker_dp_rank(worker, rank),
            None => self.device.remove_worker(worker),
        }
        self.runtime.block_on(async {
            for tier in self.lower.all() {
                match rank {
                    Some(rank) => tier.remove_worker_dp_rank(worker, rank).await,
                    None => tier.remove_worker(worker).await,
                }
            }
        });
    }
}

/// `ListenerLoop` of one rank, without its sockets.
struct Listener {
    worker: WorkerWithDpRank,
    normalizer: ZmqEventNormalizer,
    cursor: CursorState,
}

impl Listener {
    /// As `apply_live_batch`, and as `replay_gap` does for each batch of an answer. Returns whether it could be read.
    fn take(&mut self, seq: u64, payload: &[u8], indexes: &mut Indexes) -> bool {
        let Ok(batch) = decode_event_batch(payload) else { return false };
        let rank = batch.data_parallel_rank.map_or(self.worker.dp_rank, i32::cast_unsigned);
        for raw in batch.events {
            let worker = WorkerWithDpRank::new(self.worker.worker_id, rank);
            let Some(event) = self.normalizer.normalize(raw, seq, worker) else { continue };
            indexes.apply(event.into_router_event().expect("a placement of a worker"));
        }
        self.cursor = self.cursor.advance_to(seq);
        true
    }
}

struct Stack {
    indexes: Indexes,
    /// The batches of each engine's life, as they are on the wire (EV-25).
    published: BTreeMap<(u64, u64), Vec<Vec<u8>>>,
    listeners: BTreeMap<(u64, u64), Listener>,
    block_size: u32,
    buffer: usize,
    replay: bool,
}

fn on_the_wire(event: &Event) -> serde_json::Value {
    let hashes: Vec<u64> = event.keys.iter().map(|key| bits(*key)).collect();
    match event.kind.as_str() {
        "stored" => json!({
            "type": "BlockStored",
            "block_hashes": hashes,
            "parent_block_hash": event.parent.map(bits),
            "token_ids": tokens(&event.tokens),
            "block_size": event.block_size,
            "medium": event.medium,
            "lora_name": event.lora,
            "cache_salt": event.salt,
            "group_idx": event.group,
            "kv_cache_spec_kind": event.spec,
        }),
        "removed" => json!({
            "type": "BlockRemoved",
            "block_hashes": hashes,
            "medium": event.medium,
            "group_idx": event.group,
        }),
        _ => json!({"type": "AllBlocksCleared"}),
    }
}

impl Operations for Stack {
    fn publish(&mut self, batch: Batch) -> Result<Published, Refusal> {
        let events: Vec<_> = batch.events.iter().map(on_the_wire).collect();
        let payload = rmp_serde::to_vec(&(0.0, events, Some(batch.rank))).expect("no type of it is unknown to msgpack");
        let batches = self.published.entry((batch.worker, batch.rank)).or_default();
        batches.push(payload);
        Ok(Published { seq: batches.len() as u64 - 1 })
    }

    fn deliver(&mut self, delivery: Delivery) -> Result<Delivered, Refusal> {
        let engine = (delivery.worker, delivery.rank);
        let batches = self.published.get(&engine).map_or(&[][..], Vec::as_slice);
        let seq = delivery.seq as u64;
        let Some(payload) = batches.get(delivery.seq as usize) else {
            return refuse("out_of_range", format!("seq: {}", delivery.seq));
        };
        let listener = self.listeners.entry(engine).or_insert_with(|| Listener {
            worker: WorkerWithDpRank::new(delivery.worker, delivery.rank as u32),
            normalizer: ZmqEventNormalizer::new(self.block_size),
            cursor: CursorState::Initial,
        });
        let asked = match listener.cursor.observe(seq) {
            CursorObservation::Initial { got } if got > 0 => Some(0),
            CursorObservation::Gap { expected, .. } => Some(expected),
            _ => None,
        };
        let mut replayed = asked.map(|_| Vec::new());
        if let (Some(from), Some(replayed), true) = (asked, &mut replayed, self.replay) {
            let oldest = batches.len().saturating_sub(self.buffer);
            for number in oldest.max(from as usize)..batches.len() {
                if listener.take(number as u64, &batches[number], &mut self.indexes) {
                    replayed.push(number as u64);
                }
            }
        }
        if self.indexes.ended {
            return Err(Refusal::Unsupported);
        }
        let stale = matches!(listener.cursor.observe(seq), CursorObservation::Stale { .. });
        let applied = !stale && listener.take(seq, payload, &mut self.indexes);
        if self.indexes.ended {
            return Err(Refusal::Unsupported);
        }
        Ok(Delivered { applied, asked, replayed })
    }

    fn restart(&mut self, engine: Engine) -> Result<(), Refusal> {
        self.published.remove(&(engine.worker, engine.rank));
        Ok(())
    }

    fn resubscribe(&mut self, dropped: Ranks) -> Result<(), Refusal> {
        self.listeners
            .retain(|(worker, rank), _| *worker != dropped.worker || dropped.rank.is_some_and(|one| one != *rank));
        self.indexes.remove(dropped.worker, dropped.rank.map(|rank| rank as u32));
        Ok(())
    }

    fn query(&mut self, prompt: Prompt) -> Result<Matches, Refusal> {
        let blocks = cut(&prompt.tokens, self.block_size, &prompt.lora, &prompt.salt);
        for tier in self.indexes.lower.all() {
            self.indexes.runtime.block_on(tier.flush());
        }
        let device = self.indexes.device.find_match_details(blocks.clone(), false);
        let options = LowerTierQueryOptions::default();
        let lower = query_lower_tiers_with_options(&self.indexes.lower, &blocks, &device, options);
        let mut found: BTreeMap<(u64, u32), [u64; 4]> = BTreeMap::new();
        for (at, score) in &device.overlap_scores.scores {
            found.entry((at.worker_id, at.dp_rank)).or_default()[0] = u64::from(*score);
        }
        for (tier, place) in [(StorageTier::HostPinned, 1), (StorageTier::Disk, 2), (StorageTier::External, 3)] {
            for (at, hits) in lower.get(&tier).into_iter().flat_map(|matched| &matched.hits) {
                found.entry((at.worker_id, at.dp_rank)).or_default()[place] = *hits as u64;
            }
        }
        found.retain(|_, blocks| *blocks != [0; 4]);
        let believed = |((worker, rank), blocks): ((u64, u32), [u64; 4])| {
            let [blocks, host, disk, external] = blocks.map(|count| (count > 0).then_some(count));
            Match { worker, rank: Some(u64::from(rank)), blocks, host, disk, external }
        };
        Ok(Matches { matches: found.into_iter().map(believed).collect() })
    }
}
