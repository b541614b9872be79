//! Arguments of a call: `key=value` typed by the schema, `key:=json` as it is, `--args` below both.

mod typed;

use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;
use turnbuckle_protocol::types::JsonObject;

use typed::Expectation;

/// Why arguments cannot be sent.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum PairError {
    /// A word has no `=`.
    #[error("`{0}` is neither `key=value` nor `key:=json`")]
    NotAPair(String),
    /// An argument of a prompt has no `=`.
    #[error("`{0}` is not `key=value`")]
    NotAText(String),
    /// What stands after `:=` is no JSON.
    #[error("`{key}` is not JSON: {problem}")]
    NotJson {
        /// The key.
        key: String,
        /// What the parser met.
        problem: String,
    },
    /// The schema wants something else.
    #[error("`{key}` has to be {expected}, and not `{value}`")]
    Unfit {
        /// The key.
        key: String,
        /// What the schema wants.
        expected: String,
        /// What was given.
        value: String,
    },
    /// A key that is no list was given twice.
    #[error("`{0}` is given more than once, and is no list")]
    Repeated(String),
    /// The schema knows all keys, and not this one.
    #[error("there is no argument `{key}`; there is {known}")]
    Unknown {
        /// The key.
        key: String,
        /// The ones that exist.
        known: String,
    },
    /// `--args` is no JSON object.
    #[error("`--args` is not a JSON object{0}")]
    NotAnObject(String),
    /// `--args` could not be read.
    #[error("`--args` cannot be read from {0}")]
    Unreadable(String),
}

/// One word of the command line.
#[derive(Debug, PartialEq)]
enum Pair {
    Text(String, String),
    Json(String, Value),
}

/// Reads `--args`: JSON, `@file`, or `-` for stdin.
pub(crate) fn read_object(
    text: &str,
    cwd: &Path,
    stdin: impl Read,
) -> Result<JsonObject, PairError> {
    let unreadable =
        |place: &str, error: io::Error| PairError::Unreadable(format!("{place}: {error}"));
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
        Ok(_) => Err(PairError::NotAnObject(String::new())),
        Err(error) => Err(PairError::NotAnObject(format!(": {error}"))),
    }
}

/// Returns the arguments of a call. Pairs win over what `--args` says.
pub(crate) fn arguments(
    words: &[String],
    below: JsonObject,
    schema: &JsonObject,
) -> Result<JsonObject, PairError> {
    let pairs = words.iter().map(|word| Pair::parse(word));
    let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    let mut arguments = below;
    let mut done: Vec<&str> = Vec::new();
    for pair in &pairs {
        let key = pair.key();
        if done.contains(&key) {
            continue;
        }
        done.push(key);
        let same: Vec<_> = pairs.iter().filter(|other| other.key() == key).collect();
        let value = Expectation::of(key, schema)?.value(&same)?;
        arguments.insert(key.to_owned(), value);
    }
    Ok(arguments)
}

/// Returns arguments that are all text, as prompts have them.
pub(crate) fn texts(words: &[String]) -> Result<Vec<(String, String)>, PairError> {
    let text = |word: &String| match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(PairError::NotAText(word.clone())),
    };
    words.iter().map(text).collect()
}

impl Pair {
    fn parse(word: &str) -> Result<Self, PairError> {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) if !key.is_empty() && key != ":" => (key, value),
            _ => return Err(PairError::NotAPair(word.to_owned())),
        };
        let Some(key) = key.strip_suffix(':') else {
            return Ok(Self::Text(key.to_owned(), value.to_owned()));
        };
        match serde_json::from_str(value) {
            Ok(value) => Ok(Self::Json(key.to_owned(), value)),
            Err(error) => Err(PairError::NotJson {
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

#[cfg(test)]
mod tests;
