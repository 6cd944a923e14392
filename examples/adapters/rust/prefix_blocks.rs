//! A block manager with full attention. The least recently used block goes first.

use crate::has;
use crate::operations::*;
use kvoracle::{refuse, Arguments, Cache, Json, Kind, Refusal};
use std::collections::{BTreeMap, HashMap};

pub const KIND: Kind = Kind {
    name: "prefix.blocks",
    open,
    operations: &[
        "request",
        "append",
        "set",
        "match",
        "allocate",
        "cache",
        "free",
        "table",
        "usage",
        "cached_tokens",
        "take",
        "release",
        "touch",
    ],
    conventions: &[
        "own_blocks",
        "config attention only default",
        "config eagle only default",
        "config hash_lookahead only default",
        "config watermark only default",
    ],
};

type Content = (Option<i64>, Vec<i64>, String, Option<(String, String)>);

#[derive(Default)]
struct Request {
    tokens: Vec<i64>,
    salt: String,
    lora: Option<(String, String)>,
    skips: bool,
    keys: Vec<i64>,
    table: Vec<i64>,
    computed: i64,
    registered: Option<usize>, // blocks that were looked at for keys
}

#[derive(Clone, Default)]
struct Block {
    users: i64,
    key: Option<i64>,
    place: i64, // in the order of free blocks
}

pub struct Manager {
    size: i64,
    longest: i64,
    caching: bool,
    blocks: Vec<Block>,
    free: BTreeMap<i64, i64>, // block by place: the first is handed out next
    next_place: i64,
    first_place: i64,
    holders: HashMap<i64, Vec<i64>>,
    numbers: HashMap<Content, i64>,
    depths: HashMap<i64, i64>,
    requests: HashMap<i64, Request>,
}

fn open(config: &Arguments, _profile: &str) -> Result<Box<dyn Cache>, String> {
    Ok(Box::new(ByName(Manager::open(config)?)))
}

/// For tests.
#[cfg(test)]
pub fn made(config: &str, _profile: &str) -> Result<Manager, String> {
    kvoracle::with_config(config, Manager::open)
}

impl Manager {
    fn open(config: &Arguments) -> Result<Manager, String> {
        let number = |name, default| {
            config
                .integer_or(name, default)
                .map_err(|why| format!("{why:?}"))
        };
        if config.text("attention").unwrap_or("full") != "full"
            || config.flag("eagle", false)
            || number("hash_lookahead", 0)? != 0
            || config
                .optional("watermark")
                .and_then(Json::as_f64)
                .unwrap_or(0.0)
                != 0.0
            || config.optional("retention").is_some()
        {
            return Err("full attention alone".into());
        }
        let mut made = Manager {
            size: number("block_size", 1)?,
            longest: number("max_model_len", 0)?,
            caching: config.flag("enable_caching", true),
            blocks: vec![Block::default(); number("num_blocks", 1)? as usize],
            free: BTreeMap::new(),
            next_place: 0,
            first_place: 0,
            holders: HashMap::new(),
            numbers: HashMap::new(),
            depths: HashMap::new(),
            requests: HashMap::new(),
        };
        for block in (1..made.blocks.len() as i64).rev() {
            made.put_back(block, true);
        }
        Ok(made)
    }

    fn find(&mut self, number: i64) -> Result<&mut Request, Refusal> {
        match self.requests.get_mut(&number) {
            Some(request) => Ok(request),
            None => refuse("precondition", format!("request {number}")),
        }
    }

    fn check(&self, blocks: &[i64]) -> Result<(), Refusal> {
        match blocks
            .iter()
            .find(|block| **block < 0 || **block >= self.blocks.len() as i64)
        {
            None => Ok(()),
            Some(block) => refuse("out_of_range", format!("block {block}")),
        }
    }

    fn ceil(&self, tokens: i64) -> i64 {
        (tokens + self.size - 1).div_euclid(self.size)
    }

    fn put_back(&mut self, block: i64, last: bool) {
        let place = if last {
            self.next_place
        } else {
            self.first_place - 1
        };
        self.next_place = self.next_place.max(place + 1);
        self.first_place = self.first_place.min(place);
        self.blocks[block as usize].place = place;
        self.free.insert(place, block);
    }

    fn pin(&mut self, blocks: &[i64]) {
        for block in blocks.iter().filter(|block| **block != 0) {
            let own = &mut self.blocks[*block as usize];
            if own.users == 0 {
                self.free.remove(&own.place);
            }
            own.users += 1;
        }
    }

    fn drop_users(&mut self, blocks: impl Iterator<Item = i64>) {
        for block in blocks.filter(|block| *block != 0) {
            self.blocks[block as usize].users -= 1;
            if self.blocks[block as usize].users == 0 {
                // Without a key it is of no use: it goes first.
                let useful = self.blocks[block as usize].key.is_some() && self.caching;
                self.put_back(block, useful);
            }
        }
    }

    fn hand_out(&mut self, count: i64, evicted: &mut Vec<i64>) -> Vec<i64> {
        let mut blocks = Vec::new();
        for _ in 0..count.max(0) {
            let (_, block) = self.free.pop_first().expect("enough are free");
            let own = &mut self.blocks[block as usize];
            own.users = 1;
            if let Some(key) = own.key.take() {
                self.holders
                    .get_mut(&key)
                    .expect("it was held")
                    .retain(|other| *other != block);
                evicted.push(block);
            }
            blocks.push(block);
        }
        blocks
    }

    fn add_keys(&mut self, number: i64) -> Vec<i64> {
        let size = self.size as usize;
        let request = self.requests.get_mut(&number).expect("it was found");
        let mut added = Vec::new();
        while self.caching && (request.keys.len() + 1) * size <= request.tokens.len() {
            let block = request.keys.len();
            let content = (
                request.keys.last().copied(),
                request.tokens[block * size..(block + 1) * size].to_vec(),
                if block == 0 {
                    request.salt.clone()
                } else {
                    String::new()
                },
                request.lora.clone(),
            );
            let next = self.numbers.len() as i64;
            let key = *self.numbers.entry(content).or_insert(next);
            self.depths.insert(key, block as i64 + 1);
            request.keys.push(key);
            added.push(key);
        }
        added
    }

    fn fits(&self, request: &Request, hits: &[i64], tokens: i64, reserved: i64) -> bool {
        let mut need = self.ceil(tokens) - request.table.len() as i64;
        if request.registered.is_none() {
            let unused = |block: &&i64| **block != 0 && self.blocks[**block as usize].users == 0;
            need = (need - hits.len() as i64).max(0) + hits.iter().filter(unused).count() as i64;
        }
        need.max(0) <= self.free.len() as i64 - reserved
    }

    fn hold(&mut self, number: i64, tokens: i64) -> Result<(), Refusal> {
        let request = self.requests.get_mut(&number).expect("found");
        let whole = tokens
            .min(request.tokens.len() as i64)
            .div_euclid(self.size)
            .max(0) as usize;
        let end = whole.min(request.keys.len());
        let begin = request.registered.unwrap_or(0);
        if end <= begin {
            return Ok(());
        }
        if end > request.table.len() {
            return refuse("precondition", "slots");
        }
        request.registered = Some(end);
        for (block, key) in request
            .table
            .iter()
            .zip(&request.keys)
            .take(end)
            .skip(begin)
        {
            let own = &mut self.blocks[*block as usize];
            if *block != 0 && own.key.is_none() {
                own.key = Some(*key);
                self.holders.entry(*key).or_default().push(*block);
            }
        }
        Ok(())
    }
}

impl Operations for Manager {
    fn request(&mut self, of: RequestArguments) -> Result<RequestReturns, Refusal> {
        let before = self.requests.remove(&of.request).unwrap_or_default();
        let path = of.lora_path.unwrap_or_default();
        let made = Request {
            tokens: of.tokens,
            salt: of.salt.unwrap_or_default(),
            lora: of.lora.map(|name| (name, path)),
            skips: of.skip_reading.unwrap_or(false),
            table: before.table,
            registered: before.registered,
            ..Request::default()
        };
        self.requests.insert(of.request, made);
        Ok(RequestReturns {
            keys: self.add_keys(of.request),
        })
    }

    fn append(&mut self, of: AppendArguments) -> Result<AppendReturns, Refusal> {
        self.find(of.request)?.tokens.extend(of.tokens);
        Ok(AppendReturns {
            keys: self.add_keys(of.request),
        })
    }

    fn set(&mut self, of: SetArguments) -> Result<(), Refusal> {
        let request = self.find(of.request)?;
        request.computed = of.computed.unwrap_or(request.computed);
        Ok(())
    }

    fn r#match(&mut self, of: MatchArguments) -> Result<MatchReturns, Refusal> {
        self.find(of.request)?;
        let request = &self.requests[&of.request];
        let all = request.tokens.len() as i64 - if has("whole_prompt_is_hit") { 0 } else { 1 };
        let most = of.max_length.unwrap_or(all).div_euclid(self.size).max(0) as usize;
        let mut blocks = Vec::new();
        if self.caching && !request.skips {
            for key in request.keys.iter().take(most) {
                match self.holders.get(key).and_then(|holders| holders.last()) {
                    Some(block) => blocks.push(*block),
                    None => break,
                }
            }
        }
        Ok(MatchReturns {
            length: blocks.len() as i64 * self.size,
            blocks,
        })
    }

    fn allocate(&mut self, of: AllocateArguments) -> Result<AllocateReturns, Refusal> {
        self.find(of.request)?;
        let hits = of.hit_blocks.unwrap_or_default();
        self.check(&hits)?;
        let tokens = of.tokens;
        let hit_tokens = of.hit_tokens.unwrap_or(0);
        let external = of.external.unwrap_or(0);
        let request = &self.requests[&of.request];
        let fresh = request.registered.is_none();
        if tokens == 0 && hit_tokens == 0 && external == 0
            || hit_tokens != hits.len() as i64 * self.size
            || !hits.is_empty() && (!self.caching || !fresh)
            || (!hits.is_empty() || external > 0) && fresh && !request.table.is_empty()
        {
            return refuse("precondition", "tokens or hits");
        }
        for (i, block) in hits.iter().enumerate().filter(|(_, block)| **block != 0) {
            let key = self.blocks[*block as usize].key;
            if key.is_none() || key != request.keys.get(i).copied() {
                return refuse("precondition", "stale hits");
            }
        }
        let computed = request.computed + hit_tokens + external;
        let slots =
            (computed.min(self.longest) + tokens + of.lookahead.unwrap_or(0)).min(self.longest);
        let whole = (request.tokens.len() as i64).min(self.longest);
        if of.full_sequence.unwrap_or(false) && !self.fits(request, &hits, whole, 0)
            || !self.fits(request, &hits, slots, of.reserved.unwrap_or(0))
        {
            return refuse("exhausted", format!("{} blocks are free", self.free.len()));
        }
        let mut evicted = Vec::new();
        let mut table = request.table.clone();
        if fresh && (!hits.is_empty() || external > 0) {
            self.pin(&hits);
            table = hits.clone();
            if external > 0 {
                table.extend(self.hand_out(self.ceil(computed) - table.len() as i64, &mut evicted));
            }
            self.requests
                .get_mut(&of.request)
                .expect("found")
                .registered = Some(hits.len());
        }
        let new = self.hand_out(self.ceil(slots) - table.len() as i64, &mut evicted);
        table.extend(&new);
        self.requests.get_mut(&of.request).expect("found").table = table;
        if !of.delay_caching.unwrap_or(false) {
            self.hold(of.request, computed.min(self.longest) + tokens)?;
        }
        Ok(AllocateReturns {
            blocks: new,
            evicted,
        })
    }

    fn cache(&mut self, of: CacheArguments) -> Result<(), Refusal> {
        self.find(of.request)?;
        self.hold(of.request, of.tokens)
    }

    fn free(&mut self, of: FreeArguments) -> Result<(), Refusal> {
        if let Some(request) = self.requests.get_mut(&of.request) {
            let table = std::mem::take(&mut request.table);
            request.registered = None;
            self.drop_users(table.into_iter().rev());
        }
        Ok(())
    }

    fn table(&mut self, of: TableArguments) -> Result<TableReturns, Refusal> {
        let blocks = self
            .requests
            .get(&of.request)
            .map_or(Vec::new(), |request| request.table.clone());
        Ok(TableReturns { blocks })
    }

    fn cached_tokens(&mut self, of: CachedTokensArguments) -> Result<CachedTokensReturns, Refusal> {
        let table = self
            .table(TableArguments {
                request: of.request,
            })?
            .blocks;
        let keys = table
            .into_iter()
            .filter_map(|block| self.blocks[block as usize].key);
        let depth = keys.map(|key| self.depths[&key]).max().unwrap_or(0);
        Ok(CachedTokensReturns {
            tokens: depth * self.size,
        })
    }

    fn usage(&mut self, _: ()) -> Result<UsageReturns, Refusal> {
        let all = self.blocks.len() as f64 - 1.0;
        Ok(UsageReturns {
            usage: if all > 0.0 {
                1.0 - self.free.len() as f64 / all
            } else {
                0.0
            },
        })
    }

    fn take(&mut self, of: TakeArguments) -> Result<TakeReturns, Refusal> {
        if of.count > self.free.len() as i64 {
            return refuse("exhausted", format!("{} blocks are free", self.free.len()));
        }
        let mut evicted = Vec::new();
        let blocks = self.hand_out(of.count, &mut evicted);
        Ok(TakeReturns { blocks, evicted })
    }

    fn release(&mut self, of: ReleaseArguments) -> Result<(), Refusal> {
        self.check(&of.blocks)?;
        let mut times: HashMap<i64, i64> = HashMap::new();
        for block in of.blocks.iter().filter(|block| **block != 0) {
            let count = times.entry(*block).or_default();
            *count += 1;
            if *count > self.blocks[*block as usize].users {
                return refuse("precondition", "users");
            }
        }
        self.drop_users(of.blocks.into_iter());
        Ok(())
    }

    fn touch(&mut self, of: TouchArguments) -> Result<(), Refusal> {
        self.check(&of.blocks)?;
        self.pin(&of.blocks);
        Ok(())
    }
}
