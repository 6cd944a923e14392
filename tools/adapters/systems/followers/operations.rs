//! The operations of contract `events`, and what every follower needs of them.

use kvoracle::{Arguments, Refusal, operations, record, refuse};

record! {
    /// What an engine announces (EV-10 to EV-12).
    Event {
        kind: String = String::new(),
        worker: u64 = 0,
        rank: u64 = 0,
        keys: Vec<i64> = Vec::new(),
        parent: Option<i64>,
        tokens: Vec<u64> = Vec::new(),
        block_size: u64 = 0,
        lora: Option<String>,
        salt: Option<String>,
        medium: Option<String>,
        group: Option<u64>,
        spec: Option<String>,
    }
}
record! { Engine { worker: u64, rank: u64 = 0, } }
record! { Ranks { worker: u64, rank: Option<u64>, } }
record! { Prompt { tokens: Vec<u64>, lora: Option<String>, salt: Option<String>, } }
record! {
    /// What a follower believes of an engine. What is 0 is left out.
    Match {
        worker: u64,
        rank: Option<u64>,
        blocks: Option<u64>,
        host: Option<u64>,
        disk: Option<u64>,
        external: Option<u64>,
    }
}
record! { Matches { matches: Vec<Match>, } }
record! { Size { blocks: u64, } }
record! { Handover { failed: u64, } }
record! { Batch { worker: u64, rank: u64 = 0, events: Vec<Event>, } }
record! { Published { seq: u64, } }
record! { Delivery { worker: u64, rank: u64 = 0, seq: i64, } }
record! { Delivered { applied: bool, asked: Option<u64>, replayed: Option<Vec<u64>>, } }

operations! {
    stored(Event) -> ();
    removed(Event) -> ();
    cleared(Engine) -> ();
    leave(Ranks) -> ();
    query(Prompt) -> Matches;
    size(()) -> Size;
    handover(()) -> Handover;
    publish(Batch) -> Published;
    deliver(Delivery) -> Delivered;
    restart(Engine) -> ();
    resubscribe(Ranks) -> ();
}

/// A number of the config.
pub fn setting(config: &Arguments, name: &str, default: i64) -> Result<u64, String> {
    match config.integer_or(name, default) {
        Ok(value) if value >= 1 => Ok(value as u64),
        other => Err(format!("{name}: {other:?}")),
    }
}

/// The 64 bits of a key: distinct, never 0.
pub fn bits(key: i64) -> u64 {
    let mut mixed = (key as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    if mixed == 0 { u64::MAX } else { mixed }
}

/// Tokens as the followers take them.
pub fn tokens(values: &[u64]) -> Vec<u32> {
    values.iter().map(|value| *value as u32).collect()
}

/// Refuses what a follower without a wire is never given (EV-15 G3).
pub fn check_cut(event: &Event, block_size: u64) -> Result<(), Refusal> {
    if event.block_size != block_size {
        return refuse("precondition", "block_size: another");
    }
    if event.tokens.len() as u64 != block_size * event.keys.len() as u64 {
        return refuse("precondition", "tokens: not block_size for each key");
    }
    Ok(())
}
