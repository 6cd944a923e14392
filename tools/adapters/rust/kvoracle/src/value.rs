//! Types of arguments and results, declared once by `record!` and `operations!`.

use crate::{integer, Json, Tensor};
use std::collections::BTreeMap;

/// A type of arguments or results.
pub trait Value: Sized {
    fn read(value: &Json) -> Result<Self, String>;
    fn json(&self) -> Json;

    /// What stands for a member that is left out. None: it must be there.
    fn absent() -> Option<Self> {
        None
    }

    /// Whether a member with this value is left out.
    fn is_absent(&self) -> bool {
        false
    }
}

impl Value for bool {
    fn read(value: &Json) -> Result<Self, String> {
        match value {
            Json::Bool(value) => Ok(*value),
            other => Err(format!("{other} is no boolean")),
        }
    }

    fn json(&self) -> Json {
        Json::Bool(*self)
    }
}

macro_rules! whole {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn read(value: &Json) -> Result<Self, String> {
                match value {
                    Json::Integer(value) => (*value).try_into().map_err(|_| format!("{value} does not fit")),
                    other => Err(format!("{other} is no integer")),
                }
            }

            fn json(&self) -> Json {
                integer(*self)
            }
        }
    )*};
}
whole!(i64 u64);

impl Value for f64 {
    fn read(value: &Json) -> Result<Self, String> {
        value.as_f64().ok_or_else(|| format!("{value} is no number"))
    }

    fn json(&self) -> Json {
        Json::Number(*self)
    }
}

impl Value for String {
    fn read(value: &Json) -> Result<Self, String> {
        value.as_str().map(str::to_string).ok_or_else(|| format!("{value} is no text"))
    }

    fn json(&self) -> Json {
        Json::Text(self.clone())
    }
}

impl Value for Tensor {
    fn read(value: &Json) -> Result<Self, String> {
        Tensor::parse(value)
    }

    fn json(&self) -> Json {
        Tensor::json(self)
    }
}

impl Value for Json {
    fn read(value: &Json) -> Result<Self, String> {
        Ok(value.clone())
    }

    fn json(&self) -> Json {
        self.clone()
    }
}

/// No members.
impl Value for () {
    fn read(_: &Json) -> Result<Self, String> {
        Ok(())
    }

    fn json(&self) -> Json {
        Json::object([])
    }
}

impl<T: Value> Value for Vec<T> {
    fn read(value: &Json) -> Result<Self, String> {
        value.as_list().ok_or_else(|| format!("{value} is no list"))?.iter().map(T::read).collect()
    }

    fn json(&self) -> Json {
        Json::List(self.iter().map(T::json).collect())
    }
}

impl<T: Value> Value for Option<T> {
    fn read(value: &Json) -> Result<Self, String> {
        match value {
            Json::Null => Ok(None),
            value => T::read(value).map(Some),
        }
    }

    fn json(&self) -> Json {
        self.as_ref().map_or(Json::Null, T::json)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

// A raw identifier names the member without its mark.
fn plain(name: &str) -> &str {
    name.trim_start_matches("r#")
}

/// A member of a record; `default` if it is left out.
pub fn member<T: Value>(record: &Json, name: &str, default: Option<T>) -> Result<T, String> {
    let name = plain(name);
    match record.get(name) {
        Some(value) => T::read(value).map_err(|why| format!("{name}: {why}")),
        None => default.or_else(T::absent).ok_or_else(|| format!("no member {name}")),
    }
}

/// Adds a member, unless its value is that of one that is left out.
pub fn insert(members: &mut BTreeMap<String, Json>, name: &str, value: &impl Value) {
    if !value.is_absent() {
        members.insert(plain(name).to_string(), value.json());
    }
}

/// Declares a record: `record! { /// What it is. Name { /// A member. member: type, other: type = default, } }`.
#[macro_export]
macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $member:ident: $type:ty $(= $default:expr)?,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$of])* pub $member: $type,)*
        }

        impl $crate::Value for $name {
            fn read(value: &$crate::Json) -> Result<Self, String> {
                Ok($name {
                    $($member: $crate::member(value, stringify!($member), None$(.or(Some($default)))?)?,)*
                })
            }

            fn json(&self) -> $crate::Json {
                let mut members = std::collections::BTreeMap::new();
                $($crate::insert(&mut members, stringify!($member), &self.$member);)*
                $crate::Json::Object(members)
            }
        }
    };
}

/// Declares operations: `operations! { /// What it does. name(Arguments) -> Results; }`. Makes the trait `Operations`
/// with a method each, and `ByName(cache)`, which is a [`Cache`](crate::Cache).
#[macro_export]
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($arguments:ty) -> $results:ty;)*) => {
        /// A method for each operation. One that is left out is an operation that the cache lacks.
        pub trait Operations {
            $($(#[$doc])*
            fn $name(&mut self, _arguments: $arguments) -> Result<$results, $crate::Refusal> {
                Err($crate::Refusal::Unsupported)
            })*
        }

        /// Carries out operations by name.
        pub struct ByName<T>(pub T);

        impl<T: Operations> $crate::Cache for ByName<T> {
            fn call(&mut self, name: &str, arguments: &$crate::Arguments) -> Result<$crate::Json, $crate::Refusal> {
                match name {
                    $(name if name == stringify!($name).trim_start_matches("r#") => {
                        let results: $results = Operations::$name(&mut self.0, arguments.read()?)?;
                        Ok($crate::Value::json(&results))
                    })*
                    _ => Err($crate::Refusal::Unsupported),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Cache, Json, Refusal};

    record! { Sizes { heads: u64, r#type: Option<String>, width: i64 = -7, } }
    operations! {
        echo(Sizes) -> Sizes;
        lacking(()) -> ();
    }

    struct Echo;

    impl Operations for Echo {
        fn echo(&mut self, sizes: Sizes) -> Result<Sizes, Refusal> {
            Ok(sizes)
        }
    }

    #[test]
    fn reads_and_writes_what_is_declared() {
        let mut cache = ByName(Echo);
        let mut call = |name: &str, arguments: &str| {
            let arguments = Json::parse(arguments).unwrap();
            cache.call(name, &crate::Arguments(&arguments)).map(|results| results.to_string())
        };
        assert_eq!(call("echo", r#"{"heads":2}"#), Ok(r#"{"heads":2,"width":-7}"#.into()));
        assert_eq!(
            call("echo", r#"{"heads":2,"type":"a","width":3}"#),
            Ok(r#"{"heads":2,"type":"a","width":3}"#.into())
        );
        assert_eq!(call("echo", "{}"), Err(Refusal::Fault("no member heads".into())));
        assert_eq!(call("echo", r#"{"heads":-1}"#), Err(Refusal::Fault("heads: -1 does not fit".into())));
        assert_eq!(call("lacking", "{}"), Err(Refusal::Unsupported));
        assert_eq!(call("unknown", "{}"), Err(Refusal::Unsupported));
    }
}
