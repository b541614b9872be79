//! Texts of violations: the expected and the actual value.

use serde_json::{Map, Value};

use super::{
    alternatives::resolve,
    expression::{StringFormat, ValueShape},
    schema_set::SchemaSet,
};

/// The maximum length of a quoted string.
const SHOWN: usize = 40;

/// Describes an unexpected value.
pub(super) fn mismatch(schemas: &SchemaSet, shape: &ValueShape, value: &Value) -> String {
    format!(
        "{} is expected, but it is {}",
        expected(schemas, shape),
        there(value)
    )
}

/// Describes null in place of an omitted field.
pub(super) fn null(schemas: &SchemaSet, shape: &ValueShape) -> String {
    let expected = expected(schemas, shape);
    format!("{expected} is expected, but it is null (omit it instead)")
}

/// Describes a missing field, and a similar one that is present.
pub(super) fn missing(
    schemas: &SchemaSet,
    shape: &ValueShape,
    name: &str,
    object: &Map<String, Value>,
) -> String {
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let mut names = object.keys();
    let similar = match names.find(|other| plain(other) == plain(name)) {
        Some(other) => format!(" (found `{}`)", shortened(other)),
        None => String::new(),
    };
    let expected = expected(schemas, shape);
    format!("{expected} is expected, but it is missing{similar}")
}

/// Joins alternatives: `a`, `b` or `c`.
pub(super) fn either(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Quotes a string, shortened if it is long.
pub(super) fn quoted(text: &str) -> String {
    Value::from(shortened(text)).to_string()
}

/// Describes the expected value.
fn expected(schemas: &SchemaSet, shape: &ValueShape) -> String {
    match shape {
        ValueShape::Any => "a value".to_owned(),
        ValueShape::Null => "null".to_owned(),
        ValueShape::Boolean => "a boolean".to_owned(),
        ValueShape::Integer(None) => "an integer".to_owned(),
        ValueShape::Integer(Some(least)) => format!("an integer of {least} or more"),
        ValueShape::Number(None) => "a number".to_owned(),
        ValueShape::Number(Some((low, high))) => format!("a number from {low} to {high}"),
        ValueShape::String(StringFormat::Base64) => "a string of base64".to_owned(),
        ValueShape::String(StringFormat::Uri) => "a string with a URI".to_owned(),
        ValueShape::String(StringFormat::UriTemplate) => "a string with a URI template".to_owned(),
        ValueShape::String(StringFormat::Any) => "a string".to_owned(),
        ValueShape::Literal(literal) => format!("`{literal}`"),
        ValueShape::List(..) => "an array".to_owned(),
        ValueShape::Map(_) | ValueShape::Object(_) | ValueShape::All(_) => "an object".to_owned(),
        ValueShape::Named(_) => expected(schemas, resolve(schemas, shape)),
        ValueShape::One(shapes) => {
            let mut all: Vec<String> = Vec::new();
            for shape in shapes {
                let one = expected(schemas, shape);
                if !all.contains(&one) {
                    all.push(one);
                }
            }
            either(&all)
        }
    }
}

/// Describes the actual value.
fn there(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => format!("the boolean `{value}`"),
        Value::Number(_) => format!("the number `{value}`"),
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
