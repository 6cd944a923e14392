//! Kind `chain`: `ChainIndex` of kv-index, as the README of that crate says to drive it.

use crate::operations::*;
use kv_index::{ApplyError, ChainBlockMap, ChainIndex, SequenceHash, StoredBlock, salt};
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
    /// Of each worker: its number in the index, and the map that its events go with.
    workers: BTreeMap<u64, (u32, ChainBlockMap)>,
    block_size: u64,
}

impl Chain {
    fn cut(&self, of: &[u64], lora: &Option<String>, salt: &Option<String>) -> Vec<kv_index::ContentHash> {
        let (lora, salt) = (lora.as_deref(), salt.as_deref());
        salt::namespaced_request_content_hashes(&tokens(of), self.block_size as usize, lora, salt)
    }
}

impl Operations for Chain {
    fn stored(&mut self, event: Event) -> Result<(), Refusal> {
        check_cut(&event, self.block_size)?;
        let contents = self.cut(&event.tokens, &event.lora, &event.salt);
        let blocks: Vec<StoredBlock> = (event.keys.iter().zip(contents))
            .map(|(key, content_hash)| StoredBlock { seq_hash: SequenceHash(bits(*key)), content_hash })
            .collect();
        let index = &self.index;
        let (number, map) = match self.workers.entry(event.worker) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match index.intern_worker(&event.worker.to_string()) {
                Ok(number) => new.insert((number, ChainBlockMap::new())),
                Err(why) => return refuse("not_supported", why.to_string()),
            },
        };
        let parent = event.parent.map(|key| SequenceHash(bits(key)));
        match index.apply_stored(*number, &blocks, parent, map) {
            Ok(()) => Ok(()),
            Err(why @ ApplyError::WorkerNotTracked) => refuse("unknown_worker", why.to_string()),
            Err(why @ ApplyError::ParentBlockNotFound) => refuse("unknown_parent", why.to_string()),
        }
    }

    fn removed(&mut self, event: Event) -> Result<(), Refusal> {
        let keys: Vec<SequenceHash> = event.keys.iter().map(|key| SequenceHash(bits(*key))).collect();
        if let Some((number, map)) = self.workers.get_mut(&event.worker) {
            self.index.apply_removed(*number, &keys, map);
        }
        Ok(())
    }

    fn cleared(&mut self, engine: Engine) -> Result<(), Refusal> {
        if let Some((number, map)) = self.workers.get_mut(&engine.worker) {
            self.index.apply_cleared(*number, map);
        }
        Ok(())
    }

    fn leave(&mut self, left: Ranks) -> Result<(), Refusal> {
        if let Some((number, map)) = self.workers.remove(&left.worker) {
            self.index.remove_worker(number, map);
        }
        Ok(())
    }

    fn query(&mut self, prompt: Prompt) -> Result<Matches, Refusal> {
        let contents = self.cut(&prompt.tokens, &prompt.lora, &prompt.salt);
        let found = self.index.find_matches(&contents, false);
        let believed = |(worker, (number, _)): (&u64, &(u32, ChainBlockMap))| {
            let blocks = u64::from(*found.scores.get(number)?);
            Some(Match { worker: *worker, rank: None, blocks: Some(blocks), host: None, disk: None, external: None })
        };
        Ok(Matches { matches: self.workers.iter().filter_map(believed).collect() })
    }

    fn size(&mut self, _: ()) -> Result<Size, Refusal> {
        Ok(Size { blocks: self.index.current_size() as u64 })
    }
}
