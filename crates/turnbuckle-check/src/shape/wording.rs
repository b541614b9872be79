//! What is said about a flaw: what is expected, and what is there.

use serde_json::{Map, Value};

use super::alternatives::whole;
use super::book::Book;
use super::expression::{Shape, Text};

/// How much of a string is shown.
const SHOWN: usize = 40;

/// There is something else than is expected.
pub(super) fn unlike(book: &Book, shape: &Shape, value: &Value) -> String {
    format!(
        "{} is expected, but it is {}",
        expected(book, shape),
        there(value)
    )
}

/// A field that may be left out is null instead.
pub(super) fn null(book: &Book, shape: &Shape) -> String {
    let expected = expected(book, shape);
    format!("{expected} is expected, but it is null (leave it out instead)")
}

/// A field is missing; another one that looks like it may be there.
pub(super) fn missing(
    book: &Book,
    shape: &Shape,
    name: &str,
    object: &Map<String, Value>,
) -> String {
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let mut names = object.keys();
    let similar = match names.find(|other| plain(other) == plain(name)) {
        Some(other) => format!(" (there is `{}`)", shortened(other)),
        None => String::new(),
    };
    let expected = expected(book, shape);
    format!("{expected} is expected, but it is missing{similar}")
}

/// Lists what there is a choice of: `a`, `b` or `c`.
pub(super) fn either(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Writes a string in quotation marks, shortened if it is long.
pub(super) fn quoted(text: &str) -> String {
    Value::from(shortened(text)).to_string()
}

/// Names what is expected.
fn expected(book: &Book, shape: &Shape) -> String {
    match shape {
        Shape::Any => "a value".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Boolean => "a boolean".to_owned(),
        Shape::Integer(None) => "an integer".to_owned(),
        Shape::Integer(Some(least)) => format!("an integer of {least} or more"),
        Shape::Number(None) => "a number".to_owned(),
        Shape::Number(Some((low, high))) => format!("a number from {low} to {high}"),
        Shape::String(Text::Base64) => "a string of base64".to_owned(),
        Shape::String(Text::Uri) => "a string with a URI".to_owned(),
        Shape::String(Text::UriTemplate) => "a string with a URI template".to_owned(),
        Shape::String(Text::Any) => "a string".to_owned(),
        Shape::Literal(literal) => format!("`{literal}`"),
        Shape::List(..) => "an array".to_owned(),
        Shape::Map(_) | Shape::Object(_) | Shape::All(_) => "an object".to_owned(),
        Shape::Named(_) => expected(book, whole(book, shape)),
        Shape::One(shapes) => {
            let mut all: Vec<String> = Vec::new();
            for shape in shapes {
                let one = expected(book, shape);
                if !all.contains(&one) {
                    all.push(one);
                }
            }
            either(&all)
        }
    }
}

/// Names what is there.
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
