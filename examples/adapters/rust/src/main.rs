//! A cache of kind layered.vector and one of kind prefix.blocks. An argument is the name of a fault
//! that they have.

mod layered_vector;
mod prefix_blocks;

/// Whether the caches have the fault.
pub fn has(fault: &str) -> bool {
    std::env::args().nth(1).as_deref() == Some(fault)
}

fn main() {
    kvoracle::serve("caches", "1", &[layered_vector::KIND, prefix_blocks::KIND]);
}
