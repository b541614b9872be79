//! Converts YAML front matter to JSON, within limits.
//!
//! The parser emits events; the size of the result is limited here. An alias costs as much as the value it repeats,
//! so aliases cannot multiply the size. Scalars follow the core schema of YAML 1.2.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Number, Value};

/// The maximum depth of nested collections.
const MAX_DEPTH: usize = 32;
/// The maximum size of all values together: bytes of text, plus a fixed cost per value.
const MAX_SIZE: usize = 256 * 1024;
/// The cost of a value in addition to its text.
const NODE_SIZE: usize = 32;

/// Parses one document, or returns an error message.
pub(super) fn read(yaml: &str) -> Result<Value, String> {
    let mut reader = Reader {
        events: Parser::new_from_str(yaml),
        anchors: HashMap::new(),
        left: MAX_SIZE,
    };
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(Value::Null),
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            event => {
                let value = reader.node(event, 0)?;
                return reader.finish().map(|()| value);
            }
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    /// The anchored values, with their sizes.
    anchors: HashMap<usize, (Value, usize)>,
    left: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, String> {
        match self.events.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(error.to_string()),
            None => Ok(Event::StreamEnd),
        }
    }

    fn finish(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                Event::StreamEnd => return Ok(()),
                Event::DocumentEnd | Event::Nothing => {}
                _ => return Err("there is more than one document".to_owned()),
            }
        }
    }

    fn spend(&mut self, size: usize) -> Result<(), String> {
        self.left = self
            .left
            .checked_sub(size)
            .ok_or("it is too large, possibly because of its aliases")?;
        Ok(())
    }

    fn node(&mut self, event: Event<'a>, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("it is more than {MAX_DEPTH} levels deep"));
        }
        let before = self.left;
        self.spend(NODE_SIZE)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.spend(text.len())?;
                (anchor, scalar(&text, style, tag.as_deref())?)
            }
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag, "seq")?;
                (anchor, self.sequence(depth)?)
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag, "map")?;
                (anchor, self.mapping(depth)?)
            }
            Event::Alias(anchor) => {
                // An unfinished anchor would contain itself.
                let (value, size) = self
                    .anchors
                    .get(&anchor)
                    .ok_or("an alias refers to an unknown anchor")?;
                let (value, size) = (value.clone(), *size);
                self.spend(size)?;
                return Ok(value);
            }
            _ => return Err("a value is missing".to_owned()),
        };
        if anchor > 0 {
            let size = before - self.left;
            // The stored copy counts too.
            self.spend(size)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(value)
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::Array(items)),
                event => items.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, String> {
        let mut members = Map::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(Value::Object(members)),
                event => key(self.node(event, depth + 1)?)?,
            };
            let event = self.next()?;
            let value = self.node(event, depth + 1)?;
            if members.contains_key(&key) {
                return Err(format!("`{key}` occurs twice"));
            }
            members.insert(key, value);
        }
    }
}

/// Converts a value to a member name, which is a string in JSON.
fn key(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        _ => Err("a key is neither a string nor a number".to_owned()),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    match tag {
        None if style == ScalarStyle::Plain => plain(text),
        None => Ok(text.into()),
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Ok(text.into()),
        Some(tag) => Err(format!("the tag `{tag}` is not supported")),
    }
}

fn check_tag(tag: Option<Cow<'_, Tag>>, expected: &str) -> Result<(), String> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == expected) => {
            Err(format!("the tag `{tag}` is not supported"))
        }
        _ => Ok(()),
    }
}

/// Resolves a scalar without quotes.
fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(Some(number)) => Value::Number(number),
            Some(None) => return Err(format!("JSON cannot represent the number `{text}`")),
            None => text.into(),
        },
    })
}

/// Parses a number; `Some(None)` is one that JSON cannot represent.
fn number(text: &str) -> Option<Option<Number>> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(None);
    }
    let begins = unsigned.strip_prefix('.').unwrap_or(unsigned);
    let is_number = begins.starts_with(|first: char| first.is_ascii_digit())
        && unsigned
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !is_number {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Some(whole.into()));
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(Some(whole.into()));
    }
    text.parse().ok().map(Number::from_f64)
}

fn radix(digits: &str, radix: u32) -> Option<Option<Number>> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let whole = plain.then(|| u64::from_str_radix(digits, radix).ok())??;
    Some(Some(whole.into()))
}

#[cfg(test)]
mod tests;
