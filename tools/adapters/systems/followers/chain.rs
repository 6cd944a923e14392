//! Kind `chain`: `ChainIndex` of kv-index, as the README of that crate says to drive it.

use crate::operations::*;
use kv_index::{
    ApplyError, ChainBlockMap, ChainIndex, ContentHash, SequenceHash, StoredBlock, chain_prefix_hash, salt,
};
use kvoracle::{Arguments, Cache, Kind, Refusal, refuse};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

pub const KIND: Kind = Kind {
    name: "events.chain",
    open,
    operations: &["stored", "removed", "cleared", "leave", "query", "size"],
    conventions: &[],
};

fn open(config: &Arguments, _: &str) -> Result<Box<dyn Cache>, String> {
    let block_size = setting(config, "block_size", 0)?;
    Ok(Box::new(ByName(Chain { index: ChainIndex::with_max_workers(1024), workers: BTreeMap::new(), block_size })))
}

struct Chain {
    index: ChainIndex,
    workers: BTreeMap<u64, Worker>,
    block_size: u64,
}

struct Worker {
    /// In the index.
    number: u32,
    /// What its events go with.
    map: ChainBlockMap,
    /// Where its keys were stored, and under which key a place was.
    places: BTreeMap<i64, SequenceHash>,
    keys: BTreeMap<SequenceHash, i64>,
}

impl Worker {
    /// Notes where a run is stored. Two events break EV-2, and end the case, since the index then forgets a block: one that
    /// stores the same contents under a second key, and one that moves a key and stores at its old place. The index takes old
    /// places off only when all of the event is stored.
    fn place(&mut self, event: &Event, contents: &[ContentHash]) -> Result<(), Refusal> {
        let mut before = event.parent.map(|parent| self.places[&parent]);
        let mut left = Vec::new();
        let mut taken = Vec::new();
        for (key, content) in event.keys.iter().zip(contents) {
            let place = before.map_or(SequenceHash(content.0), |before| chain_prefix_hash(before, *content));
            left.extend(self.places.insert(*key, place).filter(|old| *old != place));
            taken.push(place);
            if let Some(other) = self.keys.insert(place, *key) {
                let is_held = self.map.contains_key(SequenceHash(bits(other))) && self.places[&other] == place;
                if other != *key && is_held {
                    return Err(Refusal::Unsupported);
                }
            }
            before = Some(place);
        }
        if left.iter().any(|place| taken.contains(place)) {
            return Err(Refusal::Unsupported);
        }
        Ok(())
    }
}

impl Chain {
    fn cut(&self, of: &[u64], lora: &Option<String>, salt: &Option<String>) -> Vec<ContentHash> {
        let (lora, salt) = (lora.as_deref(), salt.as_deref());
        salt::namespaced_request_content_hashes(&tokens(of), self.block_size as usize, lora, salt)
    }
}

impl Operations for Chain {
    fn stored(&mut self, event: Event) -> Result<(), Refusal> {
        check_cut(&event, self.block_size)?;
        let contents = self.cut(&event.tokens, &event.lora, &event.salt);
        let blocks: Vec<StoredBlock> = (event.keys.iter().zip(&contents))
            .map(|(key, content)| StoredBlock { seq_hash: SequenceHash(bits(*key)), content_hash: *content })
            .collect();
        let worker = match self.workers.entry(event.worker) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match self.index.intern_worker(&event.worker.to_string()) {
                Ok(number) => new.insert(Worker {
                    number,
                    map: ChainBlockMap::new(),
                    places: BTreeMap::new(),
                    keys: BTreeMap::new(),
                }),
                Err(why) => return refuse("not_supported", why.to_string()),
            },
        };
        let parent = event.parent.map(|key| SequenceHash(bits(key)));
        match self.index.apply_stored(worker.number, &blocks, parent, &mut worker.map) {
            Ok(()) if blocks.is_empty() => Ok(()),
            Ok(()) => worker.place(&event, &contents),
            Err(why @ ApplyError::WorkerNotTracked) => refuse("unknown_worker", why.to_string()),
            Err(why @ ApplyError::ParentBlockNotFound) => refuse("unknown_parent", why.to_string()),
        }
    }

    fn removed(&mut self, event: Event) -> Result<(), Refusal> {
        let keys: Vec<SequenceHash> = event.keys.iter().map(|key| SequenceHash(bits(*key))).collect();
        if let Some(worker) = self.workers.get_mut(&event.worker) {
            self.index.apply_removed(worker.number, &keys, &mut worker.map);
        }
        Ok(())
    }

    fn cleared(&mut self, engine: Engine) -> Result<(), Refusal> {
        if let Some(worker) = self.workers.get_mut(&engine.worker) {
            self.index.apply_cleared(worker.number, &mut worker.map);
        }
        Ok(())
    }

    fn leave(&mut self, left: Ranks) -> Result<(), Refusal> {
        if let Some(worker) = self.workers.remove(&left.worker) {
            self.index.remove_worker(worker.number, worker.map);
        }
        Ok(())
    }

    fn query(&mut self, prompt: Prompt) -> Result<Matches, Refusal> {
        let contents = self.cut(&prompt.tokens, &prompt.lora, &prompt.salt);
        let found = self.index.find_matches(&contents, false);
        let believed = |(worker, known): (&u64, &Worker)| {
            let blocks = u64::from(*found.scores.get(&known.number)?);
            Some(Match { worker: *worker, rank: None, blocks: Some(blocks), host: None, disk: None, external: None })
        };
        Ok(Matches { matches: self.workers.iter().filter_map(believed).collect() })
    }

    fn size(&mut self, _: ()) -> Result<Size, Refusal> {
        Ok(Size { blocks: self.index.current_size() as u64 })
    }
}
