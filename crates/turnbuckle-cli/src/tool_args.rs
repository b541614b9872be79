//! Arguments of tools and prompts: `key=value` is typed by the schema, `key:=json` is JSON; both override `--args`.

use std::{
    cell::Cell,
    io::{self, Read},
    path::Path,
};

use serde_json::{Number, Value};
use turnbuckle_protocol::types::JsonObject;
use turnbuckle_text::suggestions::most_similar;

use crate::output::signature::{TypeText, parameters};

/// The reason why arguments are invalid.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ToolArgError {
    /// A tool argument without `=`.
    #[error("invalid argument `{0}`: expected `key=value` or `key:=json`")]
    NotKeyValue(String),
    /// A prompt argument without `=`.
    #[error("invalid argument `{0}`: expected `key=value`")]
    NotText(String),
    /// The text after `:=` is not JSON.
    #[error("invalid JSON for `{key}`: {problem}")]
    NotJson {
        /// The key.
        key: String,
        /// The error of the parser.
        problem: String,
    },
    /// The schema expects another type.
    #[error("invalid value `{value}` for `{key}`: expected {expected}")]
    WrongType {
        /// The key.
        key: String,
        /// The type in the schema.
        expected: String,
        /// The value on the command line.
        value: String,
    },
    /// A key that is not a list was given twice.
    #[error("`{0}` is given more than once, but is not a list")]
    Repeated(String),
    /// The schema has no such key.
    #[error("unknown argument `{key}`: {known}")]
    Unknown {
        /// The key.
        key: String,
        /// The expected keys.
        known: String,
    },
    /// `--args` is not a JSON object.
    #[error("`--args` is not a JSON object{0}")]
    NotAnObject(String),
    /// `--args` could not be read.
    #[error("cannot read `--args` from {0}")]
    Unreadable(String),
}

/// An argument of the command line.
#[derive(Debug, PartialEq)]
enum ToolArg {
    Text(String, String),
    Json(String, Value),
}

/// Reads `--args`: JSON, `@file`, or `-` for stdin.
pub(crate) fn read_args_object(
    text: &str,
    cwd: &Path,
    stdin: impl Read,
) -> Result<JsonObject, ToolArgError> {
    let unreadable =
        |source: &str, error: io::Error| ToolArgError::Unreadable(format!("{source}: {error}"));
    let text = match text.strip_prefix('@') {
        _ if text == "-" => {
            io::read_to_string(stdin).map_err(|error| unreadable("stdin", error))?
        }
        Some(file) => {
            std::fs::read_to_string(cwd.join(file)).map_err(|error| unreadable(file, error))?
        }
        None => text.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ToolArgError::NotAnObject(String::new())),
        Err(error) => Err(ToolArgError::NotAnObject(format!(": {error}"))),
    }
}

/// What happens to arguments that the schema of the tool does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownArguments {
    /// They are an error.
    Refuse,
    /// They are sent.
    Send,
}

/// Returns the arguments of a call. Pairs override `defaults`, which come from `--args`.
pub(crate) fn tool_arguments(
    words: &[String],
    defaults: JsonObject,
    schema: &JsonObject,
    unknown: UnknownArguments,
) -> Result<JsonObject, ToolArgError> {
    let pairs = words.iter().map(|word| ToolArg::parse(word));
    let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    let mut arguments = defaults;
    let mut done: Vec<&str> = Vec::new();
    for pair in &pairs {
        let key = pair.key();
        if done.contains(&key) {
            continue;
        }
        done.push(key);
        let same: Vec<_> = pairs.iter().filter(|other| other.key() == key).collect();
        let value = ExpectedType::new(key, schema).value(&same)?;
        arguments.insert(key.to_owned(), value);
    }
    let mut keys = arguments.keys();
    match keys.find(|key| !is_known(key, schema)) {
        Some(key) if unknown == UnknownArguments::Refuse => Err(unknown_key(key, schema)),
        _ => Ok(arguments),
    }
}

/// Parses arguments with text values, for prompts.
pub(crate) fn text_arguments(words: &[String]) -> Result<Vec<(String, String)>, ToolArgError> {
    let text = |word: &String| match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(ToolArgError::NotText(word.clone())),
    };
    words.iter().map(text).collect()
}

impl ToolArg {
    fn parse(word: &str) -> Result<Self, ToolArgError> {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) if !key.is_empty() && key != ":" => (key, value),
            _ => return Err(ToolArgError::NotKeyValue(word.to_owned())),
        };
        let Some(key) = key.strip_suffix(':') else {
            return Ok(Self::Text(key.to_owned(), value.to_owned()));
        };
        match serde_json::from_str(value) {
            Ok(value) => Ok(Self::Json(key.to_owned(), value)),
            Err(error) => Err(ToolArgError::NotJson {
                key: key.to_owned(),
                problem: error.to_string(),
            }),
        }
    }

    fn key(&self) -> &str {
        match self {
            Self::Text(key, _) | Self::Json(key, _) => key,
        }
    }
}

/// The type that the schema gives one argument.
#[derive(Debug)]
struct ExpectedType<'a> {
    key: &'a str,
    root: TypeText<'a>,
    schema: &'a Value,
    /// The remaining number of schema parts to try. A small schema can expand to a huge one.
    budget: Cell<u32>,
}

/// The maximum number of schema parts to try for each word of an argument.
const MAX_PARTS_PER_WORD: u32 = 1000;

/// A schema that allows any value.
const ANY_SCHEMA: Value = Value::Bool(true);

impl<'a> ExpectedType<'a> {
    /// Finds the schema of an argument.
    fn new(key: &'a str, schema: &'a JsonObject) -> Self {
        let named = schema
            .get("properties")
            .and_then(|properties| properties.get(key));
        let schema_of_key = match (named, schema.get("additionalProperties")) {
            (Some(schema), _) => schema,
            (None, Some(Value::Bool(false)) | None) => &ANY_SCHEMA,
            (None, Some(others)) => others,
        };
        Self {
            key,
            root: TypeText::new(schema),
            schema: schema_of_key,
            budget: Cell::new(0),
        }
    }

    /// Returns the value from all arguments with this key.
    fn value(&self, pairs: &[&ToolArg]) -> Result<Value, ToolArgError> {
        let words = pairs.iter().map(|pair| match pair {
            ToolArg::Text(_, text) => 1 + text.matches(',').count(),
            ToolArg::Json(..) => 0,
        });
        let words = u32::try_from(words.sum::<usize>()).unwrap_or(u32::MAX);
        self.budget.set(MAX_PARTS_PER_WORD.saturating_mul(words));
        match pairs {
            [ToolArg::Json(_, value)] => Ok(value.clone()),
            [ToolArg::Text(_, text)] => self.coerce(text, self.schema, 4),
            several => self.list_from_repeated(several),
        }
    }

    fn list_from_repeated(&self, pairs: &[&ToolArg]) -> Result<Value, ToolArgError> {
        if !self.allows(self.schema, "array") {
            return Err(ToolArgError::Repeated(self.key.to_owned()));
        }
        let item = self.item_schema();
        let value = |pair: &&ToolArg| match pair {
            ToolArg::Json(_, value) => Ok(value.clone()),
            ToolArg::Text(_, text) => self.coerce(text, item, 4),
        };
        pairs
            .iter()
            .map(value)
            .collect::<Result<_, _>>()
            .map(Value::Array)
    }

    /// Converts text to a type of the schema. Text stays text if the schema allows strings.
    fn coerce(&self, text: &str, schema: &Value, depth: u32) -> Result<Value, ToolArgError> {
        let schema = self.resolved(schema);
        let Some(left) = self.budget.get().checked_sub(1) else {
            return Err(self.wrong_type(text, schema));
        };
        self.budget.set(left);
        if let Some(value) = enum_value(text, schema) {
            return value.ok_or_else(|| self.wrong_type(text, schema));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(parts) = schema.get(keyword).and_then(Value::as_array)
                && depth > 0
            {
                let texts = parts.iter().find(|part| self.allows(part, "string"));
                let parts = texts.into_iter().chain(parts);
                let parts = parts.take_while(|_| self.budget.get() > 0);
                let mut values = parts.filter_map(|part| self.coerce(text, part, depth - 1).ok());
                return values.next().ok_or_else(|| self.wrong_type(text, schema));
            }
        }
        let names = type_names(schema);
        if names.is_empty() || names.contains(&"string") {
            return Ok(text.into());
        }
        let mut values = names
            .iter()
            .filter_map(|name| self.coerce_to(text, name, depth));
        values.next().ok_or_else(|| self.wrong_type(text, schema))
    }

    fn coerce_to(&self, text: &str, name: &str, depth: u32) -> Option<Value> {
        match name {
            "integer" => integer(text),
            "number" => number(text),
            "boolean" => text.parse().ok().map(Value::Bool),
            "null" => (text == "null").then_some(Value::Null),
            "array" => self.list_from_text(text, depth),
            "object" => serde_json::from_str(text).ok().filter(Value::is_object),
            _ => None,
        }
    }

    /// Parses a comma-separated list. Nested lists have to be JSON.
    fn list_from_text(&self, text: &str, depth: u32) -> Option<Value> {
        if text.starts_with('[') {
            return serde_json::from_str(text).ok();
        }
        if text.is_empty() {
            return Some(Value::Array(Vec::new()));
        }
        let depth = depth.checked_sub(1)?;
        let item = self.item_schema();
        let items = text
            .split(',')
            .map(|text| self.coerce(text.trim(), item, depth));
        items.collect::<Result<_, _>>().ok().map(Value::Array)
    }

    /// Follows references, and replaces an `allOf` with a single part by that part.
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..4 {
            schema = self.root.resolve(schema).unwrap_or(&ANY_SCHEMA);
            match schema
                .get("allOf")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
            {
                Some([part]) if schema.get("type").is_none() => schema = part,
                _ => return schema,
            }
        }
        &ANY_SCHEMA
    }

    fn item_schema(&self) -> &Value {
        let schema = self.resolved(self.schema);
        let parts = ["anyOf", "oneOf"].into_iter();
        let mut parts = parts
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten();
        let array = parts
            .find(|part| self.allows(part, "array"))
            .unwrap_or(schema);
        let array = self.resolved(array);
        array.get("items").unwrap_or(&ANY_SCHEMA)
    }

    /// Returns whether a schema, or one of its alternatives, allows a type.
    fn allows(&self, schema: &Value, kind: &str) -> bool {
        let schema = self.resolved(schema);
        let parts = ["anyOf", "oneOf"].into_iter();
        let mut parts = parts
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten();
        let within = |part: &Value| {
            let part = self.resolved(part);
            type_names(part).contains(&kind)
        };
        type_names(schema).contains(&kind) || parts.any(within)
    }

    fn wrong_type(&self, text: &str, schema: &Value) -> ToolArgError {
        ToolArgError::WrongType {
            key: self.key.to_owned(),
            expected: self.root.value(schema),
            value: text.to_owned(),
        }
    }
}

/// Returns the `const` or `enum` value that text matches. The outer `None` means that there is no such keyword.
fn enum_value(text: &str, schema: &Value) -> Option<Option<Value>> {
    let one = schema.get("const").map(std::slice::from_ref);
    let values = one.or_else(|| schema.get("enum")?.as_array().map(Vec::as_slice))?;
    let means = |value: &&Value| match value {
        Value::String(value) => value == text,
        // `1` matches the number 1.
        other => serde_json::from_str::<Value>(text).is_ok_and(|value| value == **other),
    };
    Some(values.iter().find(means).cloned())
}

fn type_names(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Parses an integer of up to 64 bits exactly.
fn integer(text: &str) -> Option<Value> {
    let signed = text.parse::<i64>().map(Value::from);
    signed
        .or_else(|_| text.parse::<u64>().map(Value::from))
        .ok()
}

fn number(text: &str) -> Option<Value> {
    integer(text).or_else(|| Number::from_f64(text.parse().ok()?).map(Value::Number))
}

/// Keywords that can allow further keys. A schema with one of them is left to the server.
const OPEN_KEYWORDS: [&str; 9] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "patternProperties",
    "dependentSchemas",
    "unevaluatedProperties",
];

/// Returns whether the schema has a key, or explicitly allows others.
fn is_known(key: &str, schema: &JsonObject) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    match (properties, schema.get("additionalProperties")) {
        (Some(properties), _) if properties.contains_key(key) => true,
        (_, Some(Value::Bool(false))) => false,
        (_, Some(_)) | (None, None) => true,
        (Some(_), None) => OPEN_KEYWORDS
            .iter()
            .any(|keyword| schema.contains_key(*keyword)),
    }
}

fn unknown_key(key: &str, schema: &JsonObject) -> ToolArgError {
    let names: Vec<_> = parameters(schema)
        .map(|known| known.name.to_owned())
        .collect();
    let list = names.join("`, `");
    ToolArgError::Unknown {
        key: key.to_owned(),
        known: match &*most_similar(key, names) {
            _ if list.is_empty() => "the tool takes no arguments".to_owned(),
            [nearest, ..] => format!("did you mean `{nearest}`? The tool has `{list}`"),
            [] => format!("expected one of `{list}`"),
        },
    }
}

#[cfg(test)]
mod tests;
