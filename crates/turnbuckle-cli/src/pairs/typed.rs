//! What a schema expects of one argument, and text made into that.

use std::cell::Cell;

use serde_json::{Number, Value};
use turnbuckle_protocol::types::JsonObject;

use super::{Pair, PairError};
use crate::output::signature::{Kinds, parameters};

/// What one argument has to be.
#[derive(Debug)]
pub(super) struct Expectation<'a> {
    key: &'a str,
    root: Kinds<'a>,
    schema: &'a Value,
    /// How many more parts are tried. A small schema can unfold into a huge one.
    budget: Cell<u32>,
}

/// How many parts of a schema are tried for each word of an argument.
const PARTS: u32 = 1000;

/// A schema that says nothing.
const ANYTHING: Value = Value::Bool(true);

impl<'a> Expectation<'a> {
    /// Finds what the schema of a tool says about an argument.
    pub(super) fn of(key: &'a str, schema: &'a JsonObject) -> Result<Self, PairError> {
        let named = schema
            .get("properties")
            .and_then(|properties| properties.get(key));
        let schema_of_key = match (named, schema.get("additionalProperties")) {
            (Some(schema), _) => schema,
            (None, Some(Value::Bool(false))) => return Err(unknown(key, schema)),
            (None, Some(others)) => others,
            (None, None) => &ANYTHING,
        };
        Ok(Self {
            key,
            root: Kinds::of(schema),
            schema: schema_of_key,
            budget: Cell::new(0),
        })
    }

    /// Makes a value from all words that have this key.
    pub(super) fn value(&self, pairs: &[&Pair]) -> Result<Value, PairError> {
        let words = pairs.iter().map(|pair| match pair {
            Pair::Text(_, text) => 1 + text.matches(',').count(),
            Pair::Json(..) => 0,
        });
        let words = u32::try_from(words.sum::<usize>()).unwrap_or(u32::MAX);
        self.budget.set(PARTS.saturating_mul(words));
        match pairs {
            [Pair::Json(_, value)] => Ok(value.clone()),
            [Pair::Text(_, text)] => self.typed(text, self.schema, 4),
            several => self.items(several),
        }
    }

    fn items(&self, pairs: &[&Pair]) -> Result<Value, PairError> {
        if !self.allows(self.schema, "array") {
            return Err(PairError::Repeated(self.key.to_owned()));
        }
        let item = self.item();
        let value = |pair: &&Pair| match pair {
            Pair::Json(_, value) => Ok(value.clone()),
            Pair::Text(_, text) => self.typed(text, item, 4),
        };
        pairs
            .iter()
            .map(value)
            .collect::<Result<_, _>>()
            .map(Value::Array)
    }

    /// Text stays text wherever the schema allows it; otherwise it is read as the first thing that fits.
    fn typed(&self, text: &str, schema: &Value, depth: u32) -> Result<Value, PairError> {
        let schema = self.only(schema);
        let Some(left) = self.budget.get().checked_sub(1) else {
            return Err(self.unfit(text, schema));
        };
        self.budget.set(left);
        if let Some(value) = chosen(text, schema) {
            return value.ok_or_else(|| self.unfit(text, schema));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(parts) = schema.get(keyword).and_then(Value::as_array)
                && depth > 0
            {
                let texts = parts.iter().find(|part| self.allows(part, "string"));
                let parts = texts.into_iter().chain(parts);
                let parts = parts.take_while(|_| self.budget.get() > 0);
                let mut values = parts.filter_map(|part| self.typed(text, part, depth - 1).ok());
                return values.next().ok_or_else(|| self.unfit(text, schema));
            }
        }
        let names = names(schema);
        if names.is_empty() || names.contains(&"string") {
            return Ok(text.into());
        }
        let mut values = names
            .iter()
            .filter_map(|name| self.named(text, name, depth));
        values.next().ok_or_else(|| self.unfit(text, schema))
    }

    fn named(&self, text: &str, name: &str, depth: u32) -> Option<Value> {
        match name {
            "integer" => integer(text),
            "number" => number(text),
            "boolean" => text.parse().ok().map(Value::Bool),
            "null" => (text == "null").then_some(Value::Null),
            "array" => self.list(text, depth),
            "object" => serde_json::from_str(text).ok().filter(Value::is_object),
            _ => None,
        }
    }

    /// Reads words with commas between them. Lists in it can only be written as JSON.
    fn list(&self, text: &str, depth: u32) -> Option<Value> {
        if text.starts_with('[') {
            return serde_json::from_str(text).ok();
        }
        if text.is_empty() {
            return Some(Value::Array(Vec::new()));
        }
        let depth = depth.checked_sub(1)?;
        let item = self.item();
        let items = text
            .split(',')
            .map(|text| self.typed(text.trim(), item, depth));
        items.collect::<Result<_, _>>().ok().map(Value::Array)
    }

    /// Follows references, and takes an `allOf` of one part for that part.
    fn only<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..4 {
            schema = self.root.resolve(schema).unwrap_or(&ANYTHING);
            match schema
                .get("allOf")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
            {
                Some([part]) if schema.get("type").is_none() => schema = part,
                _ => return schema,
            }
        }
        &ANYTHING
    }

    fn item(&self) -> &Value {
        let schema = self.only(self.schema);
        let parts = ["anyOf", "oneOf"].into_iter();
        let mut parts = parts
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten();
        let array = parts
            .find(|part| self.allows(part, "array"))
            .unwrap_or(schema);
        let array = self.only(array);
        array.get("items").unwrap_or(&ANYTHING)
    }

    /// Says whether a schema allows a kind of value by name, here or in one of its alternatives.
    fn allows(&self, schema: &Value, kind: &str) -> bool {
        let schema = self.only(schema);
        let parts = ["anyOf", "oneOf"].into_iter();
        let mut parts = parts
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten();
        let within = |part: &Value| {
            let part = self.only(part);
            names(part).contains(&kind)
        };
        names(schema).contains(&kind) || parts.any(within)
    }

    fn unfit(&self, text: &str, schema: &Value) -> PairError {
        PairError::Unfit {
            key: self.key.to_owned(),
            expected: self.root.of_value(schema),
            value: text.to_owned(),
        }
    }
}

/// Returns the value of a fixed choice that text means; the inner `None` if it means none.
fn chosen(text: &str, schema: &Value) -> Option<Option<Value>> {
    let one = schema.get("const").map(std::slice::from_ref);
    let values = one.or_else(|| schema.get("enum")?.as_array().map(Vec::as_slice))?;
    let means = |value: &&Value| match value {
        Value::String(value) => value == text,
        // By its text: `1` means the number 1.
        other => serde_json::from_str::<Value>(text).is_ok_and(|value| value == **other),
    };
    Some(values.iter().find(means).cloned())
}

fn names(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Digits of any length stay exact as far as 64 bits reach.
fn integer(text: &str) -> Option<Value> {
    let signed = text.parse::<i64>().map(Value::from);
    signed
        .or_else(|_| text.parse::<u64>().map(Value::from))
        .ok()
}

fn number(text: &str) -> Option<Value> {
    integer(text).or_else(|| Number::from_f64(text.parse().ok()?).map(Value::Number))
}

fn unknown(key: &str, schema: &JsonObject) -> PairError {
    let known: Vec<_> = parameters(schema)
        .map(|known| format!("`{}`", known.name))
        .collect();
    PairError::Unknown {
        key: key.to_owned(),
        known: match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        },
    }
}
