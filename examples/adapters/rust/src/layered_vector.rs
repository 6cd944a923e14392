//! Two vectors of elements a layer.

use crate::has;
use kvoracle::{integer, refuse, Arguments, Cache, Json, Kind, Refusal, Tensor};

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
    tokens: i64,
}

struct Caches(Vec<One>);

fn open(config: &Arguments, _profile: &str) -> Result<Box<dyn Cache>, String> {
    match config.optional("storage") {
        None => Ok(Box::new(Caches(Vec::new()))),
        Some(storage) => Err(format!("storage {storage}")),
    }
}

fn flat(bits: &[u32]) -> Json {
    Tensor { shape: vec![bits.len()], dtype: "f32".into(), bits: bits.to_vec() }.json()
}

impl Caches {
    fn make(&mut self, sizes: &Arguments) -> Result<Json, Refusal> {
        let size = |name| sizes.integer_or(name, 0).map(|size| size as u64);
        let layers = size("num_layers")?;
        let width = size("num_kv_heads")?.checked_mul(size("head_dim")?);
        let elements = width.and_then(|width| width.checked_mul(size("max_seq_len").unwrap_or(0)));
        match (width, elements) {
            (Some(width), Some(elements)) if layers <= 1 << 20 && elements <= 1 << 60 => {
                self.0.push(One { layers: vec![Rows::default(); layers as usize], width, tokens: 0 });
                Ok(Json::object([("cache", integer(self.0.len() as i64 - 1))]))
            }
            _ => refuse("out_of_range", "too large"),
        }
    }
}

impl Cache for Caches {
    fn call(&mut self, operation: &str, arguments: &Arguments) -> Result<Json, Refusal> {
        if operation == "new" || operation == "with_capacity" {
            return self.make(arguments);
        }
        let count = self.0.len() as i64;
        let own = &mut self.0[arguments.integer("cache")? as usize];
        let layer = match operation {
            "append" | "k" | "v" => arguments.integer("layer")? as u64 as usize,
            _ => 0,
        };
        if ["append", "k", "v"].contains(&operation) && layer >= own.layers.len() {
            return refuse("out_of_range", format!("layer {layer}"));
        }
        let nothing = Json::object([]);
        Ok(match operation {
            "append" => {
                let (k, v) = (arguments.tensor("k")?, arguments.tensor("v")?);
                if k.bits.len() as u64 != own.width || v.bits.len() as u64 != own.width {
                    return refuse("bad_shape", format!("rows have {} elements", own.width));
                }
                let rows = &mut own.layers[layer];
                rows.k.extend(&k.bits);
                rows.v.extend(if has("stores_keys_as_values") { &k.bits } else { &v.bits });
                nothing
            }
            "advance" => {
                own.tokens += 1;
                nothing
            }
            "k" => Json::object([("k", flat(&own.layers[layer].k))]),
            "v" => Json::object([("v", flat(&own.layers[layer].v))]),
            "len" => Json::object([("len", integer(own.tokens))]),
            "is_empty" => Json::object([("is_empty", Json::Bool(own.tokens == 0))]),
            "num_layers" => Json::object([("num_layers", integer(own.layers.len() as i64))]),
            "entry_size" => Json::object([("entry_size", integer(own.width))]),
            "clear" => {
                own.layers = vec![Rows::default(); own.layers.len()];
                own.tokens = 0;
                nothing
            }
            "clone" => {
                let copy = own.clone();
                self.0.push(copy);
                Json::object([("cache", integer(count))])
            }
            _ => return Err(Refusal::Unsupported),
        })
    }
}
