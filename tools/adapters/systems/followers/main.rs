//! Lets kvoracle drive followers of contract `events`: kv-index and dynamo-kv-router, each a feature of this crate.

mod operations;

#[cfg(feature = "kv-index")]
mod chain;
#[cfg(feature = "dynamo-kv-router")]
mod indexers;
#[cfg(feature = "dynamo-kv-router")]
mod stack;

use kvoracle::{Kind, serve};

fn main() {
    let kinds: &[Kind] = &[
        #[cfg(feature = "kv-index")]
        chain::KIND,
        #[cfg(feature = "dynamo-kv-router")]
        indexers::RADIX,
        #[cfg(feature = "dynamo-kv-router")]
        indexers::CRTC,
        #[cfg(feature = "dynamo-kv-router")]
        indexers::POSITIONAL,
        #[cfg(feature = "dynamo-kv-router")]
        stack::KIND,
    ];
    let arguments: Vec<String> = std::env::args().collect();
    let [_, system, version] = arguments.as_slice() else {
        eprintln!("usage: followers SYSTEM VERSION (python3 -m kvoracle.systems.install writes this command)");
        std::process::exit(2)
    };
    serve(system, version, kinds);
}
