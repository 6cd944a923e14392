//! Two vectors of elements a layer.

use crate::has;
use crate::operations::*;
use kvoracle::{refuse, Arguments, Cache, Kind, Refusal, Tensor};

pub const KIND: Kind = Kind {
    name: "layered.vector",
    open,
    operations: &[
        "new",
        "with_capacity",
        "append",
        "advance",
        "k",
        "v",
        "len",
        "is_empty",
        "num_layers",
        "entry_size",
        "clear",
        "clone",
    ],
    conventions: &["config storage only default"],
};

#[derive(Clone, Default)]
struct Rows {
    k: Vec<u32>,
    v: Vec<u32>,
}

#[derive(Clone)]
struct One {
    layers: Vec<Rows>,
    width: u64,
    tokens: u64,
}

/// The caches of one case, by number.
pub struct Caches(Vec<One>);

fn open(config: &Arguments, _profile: &str) -> Result<Box<dyn Cache>, String> {
    Ok(Box::new(ByName(Caches::open(config)?)))
}

/// For tests.
#[cfg(test)]
pub fn made(config: &str, _profile: &str) -> Result<Caches, String> {
    kvoracle::with_config(config, Caches::open)
}

fn flat(bits: &[u32]) -> Tensor {
    Tensor {
        shape: vec![bits.len()],
        dtype: "f32".into(),
        bits: bits.to_vec(),
    }
}

impl Caches {
    fn open(config: &Arguments) -> Result<Caches, String> {
        match config.optional("storage") {
            None => Ok(Caches(Vec::new())),
            Some(storage) => Err(format!("storage {storage}")),
        }
    }

    fn make(&mut self, layers: u64, heads: u64, size: u64, most: u64) -> Result<u64, Refusal> {
        let width = heads.checked_mul(size);
        let elements = width.and_then(|width| width.checked_mul(most));
        match (width, elements) {
            (Some(width), Some(elements)) if layers <= 1 << 20 && elements <= 1 << 60 => {
                self.0.push(One {
                    layers: vec![Rows::default(); layers as usize],
                    width,
                    tokens: 0,
                });
                Ok(self.0.len() as u64 - 1)
            }
            _ => refuse("out_of_range", "too large"),
        }
    }

    fn one(&mut self, cache: u64) -> &mut One {
        &mut self.0[cache as usize]
    }

    fn rows(&mut self, cache: u64, layer: u64) -> Result<&mut Rows, Refusal> {
        match self.one(cache).layers.get_mut(layer as usize) {
            Some(rows) => Ok(rows),
            None => refuse("out_of_range", format!("layer {layer}")),
        }
    }
}

impl Operations for Caches {
    fn new(&mut self, of: NewArguments) -> Result<NewReturns, Refusal> {
        Ok(NewReturns {
            cache: self.make(of.num_layers, of.num_kv_heads, of.head_dim, 0)?,
        })
    }

    fn with_capacity(&mut self, of: WithCapacityArguments) -> Result<WithCapacityReturns, Refusal> {
        let cache = self.make(of.num_layers, of.num_kv_heads, of.head_dim, of.max_seq_len)?;
        Ok(WithCapacityReturns { cache })
    }

    fn append(&mut self, of: AppendArguments) -> Result<(), Refusal> {
        let width = self.one(of.cache).width;
        let rows = self.rows(of.cache, of.layer)?;
        if of.k.bits.len() as u64 != width || of.v.bits.len() as u64 != width {
            return refuse("bad_shape", format!("rows have {width} elements"));
        }
        rows.k.extend(&of.k.bits);
        rows.v.extend(if has("stores_keys_as_values") {
            &of.k.bits
        } else {
            &of.v.bits
        });
        Ok(())
    }

    fn advance(&mut self, of: AdvanceArguments) -> Result<(), Refusal> {
        self.one(of.cache).tokens += 1;
        Ok(())
    }

    fn k(&mut self, of: KArguments) -> Result<KReturns, Refusal> {
        Ok(KReturns {
            k: flat(&self.rows(of.cache, of.layer)?.k),
        })
    }

    fn v(&mut self, of: VArguments) -> Result<VReturns, Refusal> {
        Ok(VReturns {
            v: flat(&self.rows(of.cache, of.layer)?.v),
        })
    }

    fn len(&mut self, of: LenArguments) -> Result<LenReturns, Refusal> {
        Ok(LenReturns {
            len: self.one(of.cache).tokens,
        })
    }

    fn is_empty(&mut self, of: IsEmptyArguments) -> Result<IsEmptyReturns, Refusal> {
        Ok(IsEmptyReturns {
            is_empty: self.one(of.cache).tokens == 0,
        })
    }

    fn num_layers(&mut self, of: NumLayersArguments) -> Result<NumLayersReturns, Refusal> {
        Ok(NumLayersReturns {
            num_layers: self.one(of.cache).layers.len() as u64,
        })
    }

    fn entry_size(&mut self, of: EntrySizeArguments) -> Result<EntrySizeReturns, Refusal> {
        Ok(EntrySizeReturns {
            entry_size: self.one(of.cache).width,
        })
    }

    fn clear(&mut self, of: ClearArguments) -> Result<(), Refusal> {
        let own = self.one(of.cache);
        own.layers = vec![Rows::default(); own.layers.len()];
        own.tokens = 0;
        Ok(())
    }

    fn clone(&mut self, of: CloneArguments) -> Result<CloneReturns, Refusal> {
        let copy = self.one(of.cache).clone();
        self.0.push(copy);
        Ok(CloneReturns {
            cache: self.0.len() as u64 - 1,
        })
    }
}
