//! What JSON-RPC says about every message, whatever is in it.

use serde_json::{Map, Value};
use turnbuckle_protocol::revision::Revision;

use super::Flaw;
use super::book;
use super::expression::{OBJECT, Shape, Text};
use super::wording;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Notification,
    Result,
    Error,
}

/// Returns the messages that a text of JSON carries: the one that it is, or those of a batch where there are batches.
pub(crate) fn messages(revision: Revision, value: &Value) -> &[Value] {
    match value {
        Value::Array(all) if book::of(revision).batches && !all.is_empty() => all,
        _ => std::slice::from_ref(value),
    }
}

/// Returns what a message is, and what is wrong with its envelope. What is no message at all is of no kind.
pub(crate) fn envelope(message: &Value) -> (Option<Kind>, Vec<Flaw>) {
    let message = match message {
        Value::Object(message) => message,
        Value::Array(all) if all.is_empty() => {
            return (
                None,
                vec![flaw("", "a message is expected, but it is an empty array")],
            );
        }
        Value::Array(_) => {
            let what = "one message is expected, but it is an array (only 2025-03-26 has batches)";
            return (None, vec![flaw("", what)]);
        }
        other => return (None, vec![unlike("", &OBJECT, other)]),
    };
    let mut flaws = Vec::new();
    expect(
        message,
        "jsonrpc",
        &Shape::Literal("2.0".into()),
        &mut flaws,
    );
    let has = |name: &str| message.contains_key(name);
    let kind = match (has("method"), has("result"), has("error")) {
        (true, ..) if has("id") => Kind::Request,
        (true, ..) => Kind::Notification,
        (false, true, _) => Kind::Result,
        (false, false, true) => Kind::Error,
        (false, false, false) => {
            let what = "`method`, `result` or `error` is expected, but there is none of them";
            flaws.push(flaw("", what));
            return (None, flaws);
        }
    };
    if kind == Kind::Result && has("error") {
        let what = "either `result` or `error` is expected, but both are there";
        flaws.push(flaw("", what));
    }
    match kind {
        Kind::Request | Kind::Notification => {
            expect(message, "method", &Shape::String(Text::Any), &mut flaws);
            for name in ["result", "error"].into_iter().filter(|name| has(name)) {
                let what = format!("`method` makes it no answer, but `{name}` is there");
                flaws.push(flaw("", &what));
            }
            if has("id") {
                expect(message, "id", &id(), &mut flaws);
            }
        }
        Kind::Result => expect(message, "id", &id(), &mut flaws),
        // JSON-RPC has null for an id that could not be read, the schemas of MCP leave it out: either will do.
        Kind::Error => {
            if message.get("id").is_some_and(|id| !id.is_null()) {
                expect(message, "id", &id(), &mut flaws);
            }
        }
    }
    (Some(kind), flaws)
}

fn id() -> Shape {
    Shape::One(vec![Shape::String(Text::Any), Shape::Integer(None)])
}

fn expect(message: &Map<String, Value>, name: &str, shape: &Shape, flaws: &mut Vec<Flaw>) {
    let alternatives = match shape {
        Shape::One(shapes) => shapes.as_slice(),
        one => std::slice::from_ref(one),
    };
    match message.get(name) {
        Some(value)
            if alternatives
                .iter()
                .any(|shape| super::judge::fits(shape, value)) => {}
        Some(value) => flaws.push(unlike(name, shape, value)),
        None => {
            let what = wording::missing(&book::Book::default(), shape, name, message);
            flaws.push(flaw(name, &what));
        }
    }
}

fn unlike(path: &str, shape: &Shape, value: &Value) -> Flaw {
    flaw(path, &wording::unlike(&book::Book::default(), shape, value))
}

fn flaw(path: &str, what: &str) -> Flaw {
    Flaw {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}
