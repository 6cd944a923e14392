//! JSON, as much as the protocol needs: values, a reader and a writer.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A value of JSON. Whole numbers are kept whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// An object of these members.
    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    /// A member of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.get(name),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Json]> {
        match self {
            Json::List(values) => Some(values),
            _ => None,
        }
    }

    /// A number; words are those that JSON lacks: "inf", "-inf", "nan", "nan:BITS".
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Json::Integer(value) => Some(*value as f64),
            Json::Number(value) => Some(*value),
            Json::Text(word) => match word.strip_prefix("nan:") {
                Some(bits) => bits.parse().ok().map(|bits| f64::from(f32::from_bits(bits))),
                None => match word.as_str() {
                    "inf" => Some(f64::INFINITY),
                    "-inf" => Some(f64::NEG_INFINITY),
                    "nan" => Some(f64::NAN),
                    _ => None,
                },
            },
            _ => None,
        }
    }

    /// Reads a document.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        let value = reader.value(0)?;
        reader.blanks();
        if reader.at == text.len() {
            Ok(value)
        } else {
            Err(format!("more after the document, at byte {}", reader.at))
        }
    }

    /// Appends the text of the value.
    pub fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Integer(value) => write!(out, "{value}").unwrap(),
            Json::Number(value) => write_number(*value, out),
            Json::Text(text) => write_text(text, out),
            Json::List(values) => {
                out.push('[');
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    value.write(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        to.write_str(&text)
    }
}

fn write_number(value: f64, out: &mut String) {
    if value.is_nan() {
        write!(out, "\"nan:{}\"", (value as f32).to_bits()).unwrap();
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "\"inf\"" } else { "\"-inf\"" });
    } else {
        write!(out, "{value:?}").unwrap(); // keeps the sign of zero and the point
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32).unwrap(),
            c => out.push(c),
        }
    }
    out.push('"');
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

const DEEPEST: usize = 64;

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.at < self.text.len() && self.text[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
    }

    fn fault<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("{what} at byte {}", self.at))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.text[self.at..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > DEEPEST {
            return self.fault("too deep");
        }
        self.blanks();
        match self.text.get(self.at) {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            _ if self.take("null") => Ok(Json::Null),
            _ if self.take("true") => Ok(Json::Bool(true)),
            _ if self.take("false") => Ok(Json::Bool(false)),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        let mut members = BTreeMap::new();
        self.at += 1;
        self.blanks();
        if self.take("}") {
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            let name = self.string()?;
            self.blanks();
            if !self.take(":") {
                return self.fault("no ':'");
            }
            members.insert(name, self.value(depth + 1)?);
            self.blanks();
            if self.take("}") {
                return Ok(Json::Object(members));
            }
            if !self.take(",") {
                return self.fault("no ','");
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        let mut values = Vec::new();
        self.at += 1;
        self.blanks();
        if self.take("]") {
            return Ok(Json::List(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            self.blanks();
            if self.take("]") {
                return Ok(Json::List(values));
            }
            if !self.take(",") {
                return self.fault("no ','");
            }
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let begin = self.at;
        while self.at < self.text.len() && b"+-.eE0123456789".contains(&self.text[self.at]) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.text[begin..self.at]).unwrap_or("");
        if !text.contains(['.', 'e', 'E']) {
            if let Ok(value) = text.parse() {
                return Ok(Json::Integer(value));
            }
        }
        text.parse().map(Json::Number).or_else(|_| self.fault("no value"))
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4).and_then(|four| std::str::from_utf8(four).ok());
        let code = digits.and_then(|four| u32::from_str_radix(four, 16).ok());
        self.at += 4;
        code.map_or_else(|| self.fault("no code"), Ok)
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.take("\"") {
            return self.fault("no text");
        }
        let mut bytes = Vec::new();
        loop {
            match self.text.get(self.at) {
                None => return self.fault("text without end"),
                Some(b'"') => {
                    self.at += 1;
                    return String::from_utf8(bytes).or_else(|_| self.fault("no UTF-8"));
                }
                Some(b'\\') => {
                    let escaped = self.text.get(self.at + 1).copied().unwrap_or(b'u');
                    self.at += 2;
                    let c = match escaped {
                        b'n' => '\n',
                        b't' => '\t',
                        b'r' => '\r',
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'u' => self.escaped_code()?,
                        other => other as char,
                    };
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(byte) => {
                    bytes.push(*byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escaped_code(&mut self) -> Result<char, String> {
        let mut code = self.hex()?;
        if (0xd800..0xdc00).contains(&code) && self.take("\\u") {
            code = 0x10000 + ((code - 0xd800) << 10) + (self.hex()? & 0x3ff);
        }
        Ok(char::from_u32(code).unwrap_or('\u{fffd}'))
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn what_is_read_is_written() {
        for text in [
            r#"{"a":[1,-2,3.5,-0.0,1e+300],"b":"x\"y\n","c":null,"d":true,"e":{}}"#,
            r#"[18446744073709551615,"inf","\u0001"]"#,
        ] {
            let value = Json::parse(text).unwrap();
            let again = Json::parse(&value.to_string()).unwrap();
            assert_eq!(value, again);
        }
        assert_eq!(Json::parse("\"\\ud83d\\ude00é\"").unwrap(), Json::Text("😀é".into()));
        assert!(Json::parse("-0.0").unwrap().as_f64().unwrap().is_sign_negative());
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", "{", "[1,", "{\"a\"}", "\"x", "1 2", "nul", &"[".repeat(100)] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_nan_keeps_its_payload() {
        let value = Json::parse("\"nan:2143289345\"").unwrap().as_f64().unwrap();
        assert_eq!(Json::Number(value).to_string(), "\"nan:2143289345\"");
    }
}
