//! YAML as JSON: what the head of a skill is written in, within limits.
//!
//! The parser gives events; what they may become is counted here. An alias costs as much as what it repeats, so no few
//! lines grow into many. Scalars are what the core schema of YAML 1.2 says.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Number, Value};

/// How deep collections may be inside each other.
const DEEPEST: usize = 32;
/// What all values may weigh together, in bytes of text and some for each value.
const HEAVIEST: usize = 256 * 1024;
/// What a value weighs beside its text.
const NODE: usize = 32;

/// Reads one document; the error says what is wrong with it.
pub(super) fn read(yaml: &str) -> Result<Value, String> {
    let mut reader = Reader {
        events: Parser::new_from_str(yaml),
        anchors: HashMap::new(),
        left: HEAVIEST,
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
    /// What aliases repeat, with its weight.
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

    fn spend(&mut self, weight: usize) -> Result<(), String> {
        self.left = self
            .left
            .checked_sub(weight)
            .ok_or("it is too large, or its aliases make it so")?;
        Ok(())
    }

    fn node(&mut self, event: Event<'a>, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(format!("it is more than {DEEPEST} levels deep"));
        }
        let before = self.left;
        self.spend(NODE)?;
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
                // One that is not finished yet would contain itself.
                let (value, weight) = self
                    .anchors
                    .get(&anchor)
                    .ok_or("an alias repeats nothing")?;
                let (value, weight) = (value.clone(), *weight);
                self.spend(weight)?;
                return Ok(value);
            }
            _ => return Err("a value is missing".to_owned()),
        };
        if anchor > 0 {
            let weight = before - self.left;
            // The copy that is kept counts too.
            self.spend(weight)?;
            self.anchors.insert(anchor, (value.clone(), weight));
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
                return Err(format!("`{key}` is there twice"));
            }
            members.insert(key, value);
        }
    }
}

/// The name of a member: JSON has only text there.
fn key(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        _ => Err("a key is neither text nor a number".to_owned()),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    match tag {
        None if style == ScalarStyle::Plain => plain(text),
        None => Ok(text.into()),
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Ok(text.into()),
        Some(tag) => Err(format!("the tag `{tag}` is not understood")),
    }
}

fn check_tag(tag: Option<Cow<'_, Tag>>, expected: &str) -> Result<(), String> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == expected) => {
            Err(format!("the tag `{tag}` is not understood"))
        }
        _ => Ok(()),
    }
}

/// What text without quotes means.
fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(Some(number)) => Value::Number(number),
            Some(None) => return Err(format!("JSON has no number `{text}`")),
            None => text.into(),
        },
    })
}

/// Reads a number; `Some(None)` is one that JSON cannot write.
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
