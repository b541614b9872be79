//! Deserialization errors in the terms of JSON.

use std::fmt::{self, Display, Write};

use serde::{
    Deserializer,
    de::{self, Expected, Unexpected},
};

use super::locate::{self, ValueLocation};
use crate::jsonrpc::Truncated;

/// The maximum length of a message from another library or a custom `Deserialize`, in characters.
const MAX_REASON_CHARS: usize = 1000;

/// The reason why JSON could not be deserialized: the path, the expectation and the value found.
///
/// The wording matches that of the schema validator: `invalid type: array, expected object`.
#[derive(Debug)]
pub struct JsonError(Box<ErrorParts>);

#[derive(Debug)]
struct ErrorParts {
    /// The index of the member or item on each level, innermost first.
    steps: Vec<usize>,
    /// The path, once it is known.
    path: String,
    reason: String,
    /// Set if `reason` only has the expectation, and the value found has to be added.
    needs_found: bool,
}

impl JsonError {
    /// Prefixes the path with the name of the deserialized value.
    #[must_use]
    pub fn within(mut self, name: &str) -> Self {
        let path = &mut self.0.path;
        let dot = match path.as_bytes() {
            [] | [b'[', ..] => "",
            _ => ".",
        };
        *path = format!("{name}{dot}{path}");
        self
    }

    /// Returns the path, for example `legs[1].days`; empty for the whole value.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Returns the reason.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    pub(super) fn from_display(error: impl Display) -> Self {
        Self::foreign(&error, None)
    }

    /// Converts an error of another deserializer, which has a position and the terms of serde.
    pub(super) fn foreign(error: &dyn Display, expected: Option<&str>) -> Self {
        let text = error.to_string();
        let text = without_position(&text);
        let kind = ["invalid type: ", "invalid value: "];
        let kind = kind.into_iter().find(|kind| text.starts_with(kind));
        let split = match expected {
            // The value found may contain the separator.
            Some(expected) => text
                .strip_suffix(expected)
                .and_then(|head| head.strip_suffix(", expected "))
                .map(|head| (head, expected)),
            None => text.rsplit_once(", expected "),
        };
        match (kind, split) {
            (Some(kind), Some((head, expected))) => {
                let found = found_in_json_words(&head[kind.len().min(head.len())..]);
                let expected = in_json_words(expected);
                let reason = format!("{kind}{found}, expected {expected}");
                Self::new(shortened(&reason))
            }
            _ => Self::new(shortened(text)),
        }
    }

    /// Creates the error for a value that matches no variant of an enum.
    pub(super) fn not_one_of(error: &dyn Display, variants: &[&str]) -> Self {
        let text = error.to_string();
        let is_of_other_type = ["expected value", "invalid type: ", "invalid value: map"]
            .iter()
            .any(|start| text.starts_with(start));
        if !is_of_other_type {
            return Self::from_display(text);
        }
        let mut error = Self::new(format!("expected {}", one_of(variants)));
        error.0.needs_found = true;
        error
    }

    /// Records the index of the member or item that contains the error.
    #[cold]
    pub(super) fn inside(mut self, index: usize) -> Self {
        self.0.steps.push(index);
        self
    }

    /// Resolves the indices to member names by reading the source again.
    pub(super) fn located<'de, D: Deserializer<'de>>(mut self, source: D) -> Self {
        let parts = &mut *self.0;
        parts.steps.reverse();
        let ValueLocation { path, found } = locate::find(&parts.steps, source);
        parts.path = path;
        if let (true, Some(found)) = (parts.needs_found, found) {
            parts.reason = format!("invalid type: {found}, {}", parts.reason);
        }
        self
    }

    #[cold]
    fn new(reason: String) -> Self {
        Self(Box::new(ErrorParts {
            steps: Vec::new(),
            path: String::new(),
            reason,
            needs_found: false,
        }))
    }
}

impl Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            "" => f.write_str(self.reason()),
            path => write!(f, "`{path}`: {}", self.reason()),
        }
    }
}

impl std::error::Error for JsonError {}

impl de::Error for JsonError {
    fn custom<T: Display>(message: T) -> Self {
        Self::from_display(message)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = in_json_words(&expected.to_string());
        Self::new(format!(
            "invalid type: {}, expected {expected}",
            FoundValue(found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = in_json_words(&expected.to_string());
        Self::new(format!(
            "invalid value: {}, expected {expected}",
            FoundValue(found)
        ))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        let expected = in_json_words(&expected.to_string());
        let found = items(length);
        Self::new(format!("invalid value: {found}, expected {expected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let found = FoundValue(Unexpected::Str(variant));
        let expected = one_of(expected);
        Self::new(format!("invalid value: {found}, expected {expected}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let mut text = format!("unknown field `{}`", Truncated(field));
        if !expected.is_empty() {
            let names: Vec<_> = expected.iter().map(|name| format!("`{name}`")).collect();
            let _ = write!(text, ", expected {}", either(&names));
        }
        Self::new(text)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("missing field `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("field `{field}` occurs twice"))
    }
}

/// A value found, in the terms of JSON and of limited length.
pub(super) struct FoundValue<'a>(pub(super) Unexpected<'a>);

impl Display for FoundValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Bool(truth) => write!(f, "boolean `{truth}`"),
            Unexpected::Unsigned(number) => write!(f, "number `{number}`"),
            Unexpected::Signed(number) => write!(f, "number `{number}`"),
            Unexpected::Float(number) => write!(f, "number `{number}`"),
            Unexpected::Char(one) => write!(f, "string {:?}", one.to_string()),
            Unexpected::Str(text) => write!(f, "string {:?}", Truncated(text).to_string()),
            Unexpected::Unit | Unexpected::Option => f.write_str("null"),
            Unexpected::Seq | Unexpected::TupleVariant => f.write_str("array"),
            Unexpected::Map | Unexpected::StructVariant | Unexpected::NewtypeVariant => {
                f.write_str("object")
            }
            Unexpected::Enum | Unexpected::UnitVariant => f.write_str("string"),
            Unexpected::Bytes(_) | Unexpected::NewtypeStruct => f.write_str("another value"),
            Unexpected::Other(other) => write!(f, "{}", Truncated(other)),
        }
    }
}

/// The same for a value that serde has already formatted.
fn found_in_json_words(found: &str) -> String {
    let number = ["integer `", "floating point `"]
        .iter()
        .find_map(|start| found.strip_prefix(start));
    match (found, number) {
        ("sequence" | "tuple variant", _) => "array".to_owned(),
        ("map" | "struct variant" | "newtype variant", _) => "object".to_owned(),
        ("unit variant", _) => "string".to_owned(),
        ("unit value" | "Option value", _) => "null".to_owned(),
        (_, Some(number)) => format!("number `{number}"),
        (text, None) => match text.strip_prefix("string \"") {
            // Already escaped; truncation removes the closing quote.
            Some(inside) if inside.chars().nth(101).is_some() => {
                format!("string \"{}\"", Truncated(inside))
            }
            _ => Truncated(text).to_string(),
        },
    }
}

/// Translates an expectation from the terms of serde and Rust to those of JSON; other texts are unchanged.
pub(super) fn in_json_words(expected: &str) -> String {
    if let Some(text) = of_integer(expected) {
        return text;
    }
    let text = match expected {
        "i64" | "i128" | "isize" => "integer",
        "u64" | "u128" | "usize" => "non-negative integer",
        "f32" | "f64" => "number",
        "a boolean" => "boolean",
        "a character" => "string of one character",
        "a string" | "a borrowed string" | "a formatted string" | "path string"
        | "variant identifier" | "field identifier" => "string",
        "unit" => "null",
        "a map" | "struct variant" => "object",
        "a sequence" | "tuple variant" => "array",
        "an empty array" => "empty array",
        _ => return of_structure(expected).unwrap_or_else(|| expected.to_owned()),
    };
    text.to_owned()
}

fn of_integer(expected: &str) -> Option<String> {
    let (name, is_not_zero) = match expected.strip_prefix("a nonzero ") {
        Some(name) => (name, true),
        None => (expected, false),
    };
    let (least, most) = match name {
        "i8" => (i64::from(i8::MIN), i64::from(i8::MAX)),
        "i16" => (i64::from(i16::MIN), i64::from(i16::MAX)),
        "i32" => (i64::from(i32::MIN), i64::from(i32::MAX)),
        "u8" => (0, i64::from(u8::MAX)),
        "u16" => (0, i64::from(u16::MAX)),
        "u32" => (0, i64::from(u32::MAX)),
        "u64" | "u128" | "usize" if is_not_zero => return Some("positive integer".to_owned()),
        "i64" | "i128" | "isize" if is_not_zero => return Some("integer other than 0".to_owned()),
        _ => return None,
    };
    Some(match (is_not_zero, least) {
        (false, _) => format!("integer from {least} to {most}"),
        (true, 0) => format!("integer from 1 to {most}"),
        (true, _) => format!("integer from {least} to {most} other than 0"),
    })
}

/// Replaces the names of structs and enums, which a peer does not know.
fn of_structure(expected: &str) -> Option<String> {
    let starts = |start: &str| expected.starts_with(start);
    let number = |start: &str| expected.strip_prefix(start)?.parse().ok();
    if let Some(length) = number("a tuple of size ").or_else(|| number("an array of length ")) {
        return Some(items(length));
    }
    let objects = [
        "struct ",
        "internally tagged enum ",
        "adjacently tagged enum ",
    ];
    let text = if objects.into_iter().any(starts) {
        "object"
    } else if starts("tuple struct ") || starts("tuple variant ") {
        "array"
    } else if starts("unit struct ") {
        "null"
    } else if starts("enum ") || starts("string or map") {
        "string or object"
    } else {
        return None;
    };
    Some(text.to_owned())
}

fn items(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("array of {count} item{plural}")
}

fn one_of(variants: &[&str]) -> String {
    let quoted: Vec<_> = variants.iter().map(|name| format!("{name:?}")).collect();
    either(&quoted)
}

fn either(choices: &[String]) -> String {
    match choices {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// Truncates a message of another library, which may quote megabytes.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_REASON_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Removes the position, which refers to a part of the message and does not help.
fn without_position(text: &str) -> &str {
    let Some((message, position)) = text.rsplit_once(" at line ") else {
        return text;
    };
    let is_position = position
        .split_once(" column ")
        .is_some_and(|(line, column)| line.parse::<u64>().is_ok() && column.parse::<u64>().is_ok());
    if is_position { message } else { text }
}
