//! Lets kvoracle drive a KV cache that is written in Rust. Needs the standard library alone.
//!
//! A cache implements [`Cache`], by hand or from declared [`operations!`]; [`serve`] answers kvoracle until it has
//! no more requests.

mod json;
mod value;

pub use json::Json;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::os::fd::FromRawFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Instant;
pub use value::{insert, member, Value};

/// Why a call has no results.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// The cache refuses the call, as its contract allows: code ("full", "out_of_range", ..) and detail.
    Code(&'static str, String),
    /// The cache has no such operation.
    Unsupported,
    /// The adapter got arguments that it cannot read.
    Fault(String),
}

/// A refusal with a code.
pub fn refuse<T>(code: &'static str, detail: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Code(code, detail.into()))
}

/// The caches of one case.
pub trait Cache {
    /// Carries out an operation. Returns an object of its results.
    fn call(&mut self, operation: &str, arguments: &Arguments) -> Result<Json, Refusal>;
}

/// A kind of cache that an adapter has.
pub struct Kind {
    pub name: &'static str,
    /// Opens a case, from its config and the profile. An error: this config is not supported.
    pub open: fn(&Arguments, &str) -> Result<Box<dyn Cache>, String>,
    pub operations: &'static [&'static str],
    /// Rows of a file of conventions.
    pub conventions: &'static [&'static str],
}

/// Members of an operation's arguments, or of a config.
pub struct Arguments<'a>(&'a Json);

impl Arguments<'_> {
    /// All of them as a declared [`record!`].
    pub fn read<T: Value>(&self) -> Result<T, Refusal> {
        T::read(self.0).map_err(Refusal::Fault)
    }

    /// A member; None if it is absent or null.
    pub fn optional(&self, name: &str) -> Option<&Json> {
        self.0.get(name).filter(|value| **value != Json::Null)
    }

    fn member(&self, name: &str) -> Result<&Json, Refusal> {
        self.optional(name).ok_or_else(|| Refusal::Fault(format!("no member {name}")))
    }

    pub fn integer(&self, name: &str) -> Result<i64, Refusal> {
        match self.member(name)? {
            Json::Integer(value) => Ok(*value as i64), // unsigned ones by their bits
            other => Err(Refusal::Fault(format!("{name}: {other}"))),
        }
    }

    pub fn integer_or(&self, name: &str, default: i64) -> Result<i64, Refusal> {
        self.optional(name).map_or(Ok(default), |_| self.integer(name))
    }

    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.optional(name).map_or(default, |value| *value == Json::Bool(true))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.optional(name).and_then(Json::as_str)
    }

    pub fn integers(&self, name: &str) -> Result<Vec<i64>, Refusal> {
        let list = self.optional(name).and_then(Json::as_list).unwrap_or(&[]);
        list.iter()
            .map(|value| match value {
                Json::Integer(value) => Ok(*value as i64),
                other => Err(Refusal::Fault(format!("{name}: {other}"))),
            })
            .collect()
    }

    pub fn tensor(&self, name: &str) -> Result<Tensor, Refusal> {
        Tensor::parse(self.member(name)?).map_err(|why| Refusal::Fault(format!("{name}: {why}")))
    }
}

/// A list of numbers as JSON.
pub fn list(values: &[i64]) -> Json {
    Json::List(values.iter().map(|value| Json::Integer(i128::from(*value))).collect())
}

/// A number as JSON.
pub fn integer(value: impl TryInto<i128>) -> Json {
    Json::Integer(value.try_into().unwrap_or(i128::MAX))
}

/// A dense tensor, row-major: the last axis varies fastest. `bits` has one number an element.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub shape: Vec<usize>,
    pub dtype: String,
    pub bits: Vec<u32>,
}

impl Tensor {
    pub fn f32(shape: &[usize], values: &[f32]) -> Tensor {
        let bits = values.iter().map(|value| value.to_bits()).collect();
        Tensor { shape: shape.to_vec(), dtype: "f32".into(), bits }
    }

    /// The elements of an f32 tensor.
    pub fn values(&self) -> Vec<f32> {
        self.bits.iter().map(|bits| f32::from_bits(*bits)).collect()
    }

    fn parse(text: &Json) -> Result<Tensor, String> {
        let dtype = text.get("dtype").and_then(Json::as_str).unwrap_or("f32").to_string();
        let shape = text.get("shape").and_then(Json::as_list).ok_or("no shape")?;
        let shape: Vec<usize> = shape
            .iter()
            .map(|size| match size {
                Json::Integer(size) => usize::try_from(*size).map_err(|why| why.to_string()),
                other => Err(other.to_string()),
            })
            .collect::<Result<_, _>>()?;
        let whole = |value: &Json| match value {
            Json::Integer(bits) => u32::try_from(*bits).map_err(|why| why.to_string()),
            other => Err(other.to_string()),
        };
        let bits = match (text.get("bits"), text.get("data")) {
            (Some(bits), _) => bits.as_list().ok_or("no list")?.iter().map(whole).collect::<Result<_, _>>()?,
            (_, Some(data)) if dtype == "f32" => data
                .as_list()
                .ok_or("no list")?
                .iter()
                .map(|value| value.as_f64().map(|value| (value as f32).to_bits()).ok_or("no number".to_string()))
                .collect::<Result<_, _>>()?,
            _ => return Err(format!("dtype {dtype} is read from bits alone")),
        };
        Ok(Tensor { shape, dtype, bits })
    }

    /// The tensor as JSON.
    pub fn json(&self) -> Json {
        let mut members = BTreeMap::new();
        members.insert("shape".into(), Json::List(self.shape.iter().map(|size| integer(*size as i64)).collect()));
        if self.dtype != "f32" {
            members.insert("dtype".into(), Json::Text(self.dtype.clone()));
        }
        members.insert("bits".into(), Json::List(self.bits.iter().map(|bits| integer(*bits)).collect()));
        Json::Object(members)
    }
}

/// Makes a cache from a config that is text, for tests.
pub fn with_config<T>(config: &str, make: impl Fn(&Arguments) -> Result<T, String>) -> Result<T, String> {
    make(&Arguments(&Json::parse(config)?))
}

struct Server<'a> {
    system: &'a str,
    version: &'a str,
    kinds: &'a [Kind],
    cases: HashMap<i128, Box<dyn Cache>>,
}

/// Answers kvoracle on standard input until it ends. What the program prints goes to standard error.
pub fn serve(system: &str, version: &str, kinds: &[Kind]) {
    extern "C" {
        fn dup(file: i32) -> i32;
        fn dup2(from: i32, to: i32) -> i32;
    }
    // SAFETY: both are calls of the system on files that every process has.
    let mut answers = unsafe {
        let own = dup(1);
        dup2(2, 1);
        std::fs::File::from_raw_fd(own)
    };
    let mut server = Server { system, version, kinds, cases: HashMap::new() };
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let mut answer = match Json::parse(&line) {
            Ok(request) => {
                let mut answer = server.answer(&request);
                answer.insert("id".into(), request.get("id").cloned().unwrap_or(Json::Null));
                answer
            }
            Err(why) => fault(why),
        };
        answer.entry("id".into()).or_insert(Json::Null);
        let text = Json::Object(answer).to_string() + "\n";
        if answers.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

type Answer = BTreeMap<String, Json>;

fn one(name: &str, value: Json) -> Answer {
    BTreeMap::from([(name.to_string(), value)])
}

fn fault(why: impl Into<String>) -> Answer {
    one("fault", Json::Text(why.into()))
}

fn words(words: &[&str]) -> Json {
    Json::List(words.iter().map(|word| Json::Text(word.to_string())).collect())
}

impl Server<'_> {
    fn answer(&mut self, request: &Json) -> Answer {
        if let Some(open) = request.get("open") {
            return self.open(open);
        }
        if let Some(Json::Integer(case)) = request.get("close") {
            self.cases.remove(case);
            return Answer::new();
        }
        if request.get("hello").is_some() {
            return self.greet();
        }
        let Some(Json::Integer(number)) = request.get("case") else { return fault("no case") };
        let Some(cache) = self.cases.get_mut(number) else { return fault("no such case") };
        match request.get("batch").and_then(Json::as_list) {
            Some(batch) => one(
                "batch",
                Json::List(batch.iter().map(|each| Json::Object(answered(cache.as_mut(), each))).collect()),
            ),
            None => answered(cache.as_mut(), request),
        }
    }

    fn greet(&self) -> Answer {
        let kinds = self.kinds.iter().map(|kind| {
            Json::object([
                ("kind", Json::Text(kind.name.into())),
                ("operations", words(kind.operations)),
                ("conventions", words(kind.conventions)),
            ])
        });
        one(
            "hello",
            Json::object([
                ("protocol", Json::Integer(1)),
                ("system", Json::Text(self.system.into())),
                ("version", Json::Text(self.version.into())),
                ("kinds", Json::List(kinds.collect())),
                ("batches", Json::Bool(true)),
            ]),
        )
    }

    fn open(&mut self, asked: &Json) -> Answer {
        let (Some(name), Some(profile), Some(config), Some(Json::Integer(case))) = (
            asked.get("kind").and_then(Json::as_str),
            asked.get("profile").and_then(Json::as_str),
            asked.get("config"),
            asked.get("case"),
        ) else {
            return fault("open lacks a member");
        };
        let Some(kind) = self.kinds.iter().find(|kind| kind.name == name) else {
            return fault(format!("no kind {name}"));
        };
        match (kind.open)(&Arguments(config), profile) {
            Ok(cache) => {
                self.cases.insert(*case, cache);
                Answer::new()
            }
            Err(why) => BTreeMap::from([
                ("error".to_string(), Json::Text("not_supported".into())),
                ("detail".to_string(), Json::Text(why)),
            ]),
        }
    }
}

fn answered(cache: &mut dyn Cache, request: &Json) -> Answer {
    let (Some(operation), Some(arguments)) = (request.get("op").and_then(Json::as_str), request.get("args")) else {
        return fault("no op or no args");
    };
    let begin = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| cache.call(operation, &Arguments(arguments))));
    let spent = begin.elapsed().as_nanos();
    let ret = match outcome {
        Ok(Ok(returns)) => returns,
        Ok(Err(Refusal::Code(code, detail))) => {
            Json::object([("error", Json::Text(code.into())), ("detail", Json::Text(detail))])
        }
        Ok(Err(Refusal::Unsupported)) => return one("unsupported", Json::Bool(true)),
        Ok(Err(Refusal::Fault(why))) => return fault(format!("{operation}: {why}")),
        Err(panic) => return one("threw", Json::Text(text_of(panic.as_ref()))),
    };
    BTreeMap::from([("ret".to_string(), ret), ("ns".to_string(), Json::Integer(spent as i128))])
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(i64);

    impl Cache for Counter {
        fn call(&mut self, operation: &str, arguments: &Arguments) -> Result<Json, Refusal> {
            match operation {
                "add" if arguments.integer("by")? < 0 => refuse("out_of_range", "by"),
                "add" => {
                    self.0 += arguments.integer("by")?;
                    Ok(Json::object([("count", integer(self.0))]))
                }
                "double" => Ok(Json::object([("k", arguments.tensor("k")?.json())])),
                "broken" => panic!("row {}", 7),
                _ => Err(Refusal::Unsupported),
            }
        }
    }

    fn open(_: &Arguments, _: &str) -> Result<Box<dyn Cache>, String> {
        Ok(Box::new(Counter(0)))
    }

    #[test]
    fn answers() {
        let kinds = [Kind { name: "test.kind", open, operations: &["add"], conventions: &[] }];
        let mut server = Server { system: "s", version: "v", kinds: &kinds, cases: HashMap::new() };
        for (request, wanted) in [
            (r#"{"open":{"case":1,"kind":"test.kind","profile":"documented","config":{}}}"#, "{}"),
            (r#"{"case":1,"op":"add","args":{"by":3}}"#, r#"{"ret":{"count":3}}"#),
            (r#"{"case":1,"op":"add","args":{"by":-3}}"#, r#"{"ret":{"detail":"by","error":"out_of_range"}}"#),
            (r#"{"case":1,"op":"add","args":{}}"#, r#"{"fault":"add: no member by"}"#),
            (r#"{"case":1,"batch":[{"op":"add","args":{"by":1}}]}"#, r#"{"batch":[{"ret":{"count":4}}]}"#),
            (r#"{"case":1,"op":"broken","args":{}}"#, r#"{"threw":"row 7"}"#),
            (r#"{"case":1,"op":"lacking","args":{}}"#, r#"{"unsupported":true}"#),
            (
                r#"{"case":1,"op":"double","args":{"k":{"shape":[2],"data":[1,"-inf"]}}}"#,
                r#"{"ret":{"k":{"bits":[1065353216,4286578688],"shape":[2]}}}"#,
            ),
            (r#"{"close":1}"#, "{}"),
            (r#"{"case":1,"op":"add","args":{}}"#, r#"{"fault":"no such case"}"#),
        ] {
            let mut answer = server.answer(&Json::parse(request).unwrap());
            answer.remove("ns");
            if let Some(Json::List(batch)) = answer.get_mut("batch") {
                for each in batch {
                    if let Json::Object(members) = each {
                        members.remove("ns");
                    }
                }
            }
            assert_eq!(Json::Object(answer).to_string(), wanted, "{request}");
        }
    }
}
