//! Kinds `radix`, `crtc` and `positional`: indexers of dynamo-kv-router, the latter two in its pool of one thread.

use crate::operations::*;
use dynamo_kv_router::indexer::{KvIndexerInterface, SyncIndexer, ThreadPoolIndexer};
use dynamo_kv_router::nested_map::SearchMode;
use dynamo_kv_router::protocols::*;
use dynamo_kv_router::{ConcurrentRadixTreeCompressed, PositionalIndexer, RadixTree};
use kvoracle::{Arguments, Cache, Kind, Refusal, refuse};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

const OPERATIONS: &[&str] = &["stored", "removed", "cleared", "leave", "query", "size", "handover"];
pub const RADIX: Kind = Kind { name: "events.radix", open: open_radix, operations: OPERATIONS, conventions: &[] };
pub const CRTC: Kind = Kind { name: "events.crtc", open: open_crtc, operations: OPERATIONS, conventions: &[] };
pub const POSITIONAL: Kind =
    Kind { name: "events.positional", open: open_positional, operations: OPERATIONS, conventions: &[] };

fn open_radix(config: &Arguments, _: &str) -> Result<Box<dyn Cache>, String> {
    opened(config, RadixTree::new(), Names::default())
}

fn open_crtc(config: &Arguments, _: &str) -> Result<Box<dyn Cache>, String> {
    let pool = Pool::new(config, |_| Ok(Box::new(ConcurrentRadixTreeCompressed::new)))?;
    opened(config, pool, Names { trusts: true, ..Names::default() })
}

fn open_positional(config: &Arguments, _: &str) -> Result<Box<dyn Cache>, String> {
    let pool = Pool::new(config, |config| {
        let jump = setting(config, "jump", 32)? as usize;
        let search = match config.text("search") {
            Some("binary") => SearchMode::Binary,
            _ => SearchMode::Strided,
        };
        Ok(Box::new(move || PositionalIndexer::new_with_mode(jump, search)))
    })?;
    let own = config.text("hashes") != Some("engine");
    opened(config, pool, Names { own, ..Names::default() })
}

fn opened(config: &Arguments, index: impl Index + 'static, names: Names) -> Result<Box<dyn Cache>, String> {
    let block_size = setting(config, "block_size", 0)?;
    Ok(Box::new(ByName(Follower { index, names, block_size: block_size as u32, events: 0, ended: false })))
}

/// What the indexers have in common.
trait Index {
    fn apply(&mut self, event: RouterEvent) -> Result<(), Refusal>;
    fn leave(&mut self, worker: u64, rank: Option<u32>);
    fn scores(&self, blocks: Vec<LocalBlockHash>) -> OverlapScores;
    fn size(&self) -> Result<u64, Refusal>;
    /// An empty index is in its place afterwards.
    fn dump(&mut self) -> Vec<RouterEvent>;
}

impl Index for RadixTree {
    fn apply(&mut self, event: RouterEvent) -> Result<(), Refusal> {
        self.apply_event(event).or_else(|why| match why {
            KvCacheEventError::ParentBlockNotFound => refuse("unknown_parent", why.to_string()),
            KvCacheEventError::BlockNotFound => refuse("unknown_block", why.to_string()),
            KvCacheEventError::InvalidBlockSequence => refuse("bad_sequence", why.to_string()),
            _ => Err(Refusal::Fault(why.to_string())),
        })
    }

    fn leave(&mut self, worker: u64, rank: Option<u32>) {
        match rank {
            Some(rank) => self.remove_worker_dp_rank(worker, rank),
            None => self.remove_worker(worker),
        }
    }

    fn scores(&self, blocks: Vec<LocalBlockHash>) -> OverlapScores {
        self.find_matches(blocks, false)
    }

    fn size(&self) -> Result<u64, Refusal> {
        Ok(self.current_size() as u64)
    }

    fn dump(&mut self) -> Vec<RouterEvent> {
        std::mem::take(self).dump_tree_as_events()
    }
}

type Make<T> = Box<dyn Fn() -> T>;

/// Indexers for several threads. They say of an event whether it was applied, not why it was not.
struct Pool<T: SyncIndexer> {
    indexer: ThreadPoolIndexer<T>,
    make: Make<T>,
    block_size: u32,
    runtime: tokio::runtime::Runtime,
}

impl<T: SyncIndexer> Pool<T> {
    fn new(config: &Arguments, maker: fn(&Arguments) -> Result<Make<T>, String>) -> Result<Self, String> {
        let make = maker(config)?;
        let block_size = setting(config, "block_size", 0)? as u32;
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|why| why.to_string())?;
        Ok(Pool { indexer: ThreadPoolIndexer::new(make(), 1, block_size), make, block_size, runtime })
    }
}

impl<T: SyncIndexer> Index for Pool<T> {
    fn apply(&mut self, event: RouterEvent) -> Result<(), Refusal> {
        let applied = self.runtime.block_on(self.indexer.apply_event_and_wait(event));
        applied.or_else(|why| refuse("rejected", why.to_string()))
    }

    fn leave(&mut self, worker: u64, rank: Option<u32>) {
        self.runtime.block_on(async {
            match rank {
                Some(rank) => self.indexer.remove_worker_dp_rank(worker, rank).await,
                None => self.indexer.remove_worker(worker).await,
            }
            self.indexer.flush().await
        });
    }

    fn scores(&self, blocks: Vec<LocalBlockHash>) -> OverlapScores {
        self.indexer.backend().find_matches(&blocks, false)
    }

    fn size(&self) -> Result<u64, Refusal> {
        refuse("not_supported", "it is no part of the interface")
    }

    fn dump(&mut self) -> Vec<RouterEvent> {
        let events = self.runtime.block_on(self.indexer.dump_events());
        self.indexer = ThreadPoolIndexer::new((self.make)(), 1, self.block_size);
        events.expect("both indexers have dumps")
    }
}

/// Which 64 bits stand for a key.
#[derive(Default)]
struct Names {
    /// Whether a key is the follower's own hash of its sequence, if the case has said what this is (EV-61).
    own: bool,
    /// Whether a run that names its own parent is out of contract (EV-56).
    trusts: bool,
    /// What the first event that names a key says of it: its parent and content.
    named: BTreeMap<i64, (Option<i64>, LocalBlockHash)>,
    hashes: BTreeMap<i64, u64>,
    /// The keys that stand for a hash.
    keys: BTreeMap<u64, i64>,
}

impl Names {
    fn learn(&mut self, event: &Event, contents: &[LocalBlockHash]) {
        let mut parent = event.parent;
        for (key, content) in event.keys.iter().zip(contents) {
            self.named.entry(*key).or_insert((parent, *content));
            parent = Some(*key);
        }
    }

    fn own_hash(&mut self, key: i64) -> Option<u64> {
        let mut open = Vec::new();
        let mut at = Some(key);
        let mut hash = None;
        while let Some(one) = at {
            if let Some(known) = self.hashes.get(&one) {
                hash = Some(*known);
                break;
            }
            let (parent, content) = *self.named.get(&one)?;
            if open.iter().any(|(other, _)| *other == one) {
                return None;
            }
            open.push((one, content));
            at = parent;
        }
        for (one, content) in open.into_iter().rev() {
            let next = hash.map_or(content.0, |before| compute_next_seq_hash(before, content));
            self.hashes.insert(one, next);
            hash = Some(next);
        }
        hash
    }

    fn hash(&mut self, key: i64) -> Result<ExternalSequenceBlockHash, Refusal> {
        let own = if self.own { self.own_hash(key) } else { None };
        let hash = own.unwrap_or_else(|| bits(key));
        // A case where two keys are one hash, or where the hash of a key is known after its first use, says what no engine
        // with these hashes can say.
        let is_one = *self.keys.entry(hash).or_insert(key) == key;
        if !is_one || (own.is_some() && self.keys.contains_key(&bits(key))) {
            return Err(Refusal::Unsupported);
        }
        Ok(ExternalSequenceBlockHash(hash))
    }
}

/// A follower's own hashes of the whole blocks of a prompt.
pub fn cut(of: &[u64], block_size: u32, lora: &Option<String>, salt: &Option<String>) -> Vec<LocalBlockHash> {
    let options =
        BlockHashOptions { lora_name: lora.as_deref(), cache_namespace: salt.as_deref(), ..Default::default() };
    compute_block_hash_for_seq(&tokens(of), block_size, options)
}

struct Follower<T> {
    index: T,
    names: Names,
    block_size: u32,
    events: u64,
    /// After a panic nobody knows what the index holds.
    ended: bool,
}

impl<T: Index> Follower<T> {
    fn apply(&mut self, worker: u64, rank: u64, data: KvCacheEventData) -> Result<(), Refusal> {
        self.go_on()?;
        self.events += 1;
        let event = KvCacheEvent { event_id: self.events, data, dp_rank: rank as u32 };
        let applied = catch_unwind(AssertUnwindSafe(|| self.index.apply(RouterEvent::new(worker, event))));
        self.ended = applied.is_err();
        applied.unwrap_or_else(|_| refuse("precondition", "it panics"))
    }

    fn go_on(&self) -> Result<(), Refusal> {
        if self.ended { Err(Refusal::Unsupported) } else { Ok(()) }
    }
}

impl<T: Index> Operations for Follower<T> {
    fn stored(&mut self, event: Event) -> Result<(), Refusal> {
        check_cut(&event, u64::from(self.block_size))?;
        if self.names.trusts && event.parent.is_some_and(|parent| event.keys.contains(&parent)) {
            return refuse("precondition", "parent: one of the keys");
        }
        let contents = cut(&event.tokens, self.block_size, &event.lora, &event.salt);
        self.names.learn(&event, &contents);
        let mut blocks = Vec::new();
        for (key, tokens_hash) in event.keys.iter().zip(contents) {
            let block_hash = self.names.hash(*key)?;
            blocks.push(KvCacheStoredBlockData { block_hash, tokens_hash, mm_extra_info: None });
        }
        let parent_hash = event.parent.map(|key| self.names.hash(key)).transpose()?;
        let data = KvCacheStoreData { parent_hash, start_position: None, blocks };
        self.apply(event.worker, event.rank, KvCacheEventData::Stored(data))
    }

    fn removed(&mut self, event: Event) -> Result<(), Refusal> {
        let block_hashes = event.keys.iter().map(|key| self.names.hash(*key)).collect::<Result<_, _>>()?;
        let data = KvCacheEventData::Removed(KvCacheRemoveData { block_hashes });
        self.apply(event.worker, event.rank, data)
    }

    fn cleared(&mut self, engine: Engine) -> Result<(), Refusal> {
        self.apply(engine.worker, engine.rank, KvCacheEventData::Cleared)
    }

    fn leave(&mut self, left: Ranks) -> Result<(), Refusal> {
        self.go_on()?;
        self.index.leave(left.worker, left.rank.map(|rank| rank as u32));
        Ok(())
    }

    fn query(&mut self, prompt: Prompt) -> Result<Matches, Refusal> {
        self.go_on()?;
        let found = self.index.scores(cut(&prompt.tokens, self.block_size, &prompt.lora, &prompt.salt));
        let scores: BTreeMap<_, _> =
            found.scores.iter().map(|(at, blocks)| ((at.worker_id, at.dp_rank), *blocks)).collect();
        let believed = |((worker, rank), blocks): ((u64, u32), u32)| {
            let (rank, blocks) = (Some(u64::from(rank)), Some(u64::from(blocks)));
            Match { worker, rank, blocks, host: None, disk: None, external: None }
        };
        Ok(Matches { matches: scores.into_iter().map(believed).collect() })
    }

    fn size(&mut self, _: ()) -> Result<Size, Refusal> {
        self.go_on()?;
        Ok(Size { blocks: self.index.size()? })
    }

    fn handover(&mut self, _: ()) -> Result<Handover, Refusal> {
        self.go_on()?;
        let events = self.index.dump();
        let failed = events.into_iter().filter(|event| self.index.apply(event.clone()).is_err()).count();
        Ok(Handover { failed: failed as u64 })
    }
}
