//! Validates the JSON-RPC envelope of a message.

use serde_json::{Map, Value};
use turnbuckle_protocol::revision::Revision;

use super::{
    SchemaViolation,
    expression::{OBJECT, StringFormat, ValueShape},
    schema_set, violation_text,
};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Request,
    Notification,
    Result,
    Error,
}

/// Returns the messages in a JSON text: itself, or those of a batch in a revision with batches.
pub(crate) fn messages(revision: Revision, value: &Value) -> &[Value] {
    match value {
        Value::Array(all) if schema_set::for_revision(revision).batches && !all.is_empty() => all,
        _ => std::slice::from_ref(value),
    }
}

/// Returns the kind of a message and the violations in its envelope; `None` if it is not a message.
pub(crate) fn envelope(message: &Value) -> (Option<MessageKind>, Vec<SchemaViolation>) {
    let message = match message {
        Value::Object(message) => message,
        Value::Array(all) if all.is_empty() => {
            return (
                None,
                vec![violation(
                    "",
                    "a message is expected, but it is an empty array",
                )],
            );
        }
        Value::Array(_) => {
            let observed =
                "one message is expected, but it is an array (only 2025-03-26 has batches)";
            return (None, vec![violation("", observed)]);
        }
        other => return (None, vec![mismatch("", &OBJECT, other)]),
    };
    let mut violations = Vec::new();
    expect(
        message,
        "jsonrpc",
        &ValueShape::Literal("2.0".into()),
        &mut violations,
    );
    let has = |name: &str| message.contains_key(name);
    let kind = match (has("method"), has("result"), has("error")) {
        (true, ..) if has("id") => MessageKind::Request,
        (true, ..) => MessageKind::Notification,
        (false, true, _) => MessageKind::Result,
        (false, false, true) => MessageKind::Error,
        (false, false, false) => {
            let observed = "`method`, `result` or `error` is expected, but none of them is present";
            violations.push(violation("", observed));
            return (None, violations);
        }
    };
    if kind == MessageKind::Result && has("error") {
        let observed = "either `result` or `error` is expected, but both are present";
        violations.push(violation("", observed));
    }
    match kind {
        MessageKind::Request | MessageKind::Notification => {
            expect(
                message,
                "method",
                &ValueShape::String(StringFormat::Any),
                &mut violations,
            );
            for name in ["result", "error"].into_iter().filter(|name| has(name)) {
                let observed = format!("`method` is present, so `{name}` is not allowed");
                violations.push(violation("", &observed));
            }
            if has("id") {
                expect(message, "id", &id(), &mut violations);
            }
        }
        MessageKind::Result => expect(message, "id", &id(), &mut violations),
        // JSON-RPC uses a null id if the id could not be read, the MCP schemas omit it: accept
        // both.
        MessageKind::Error => {
            if message.get("id").is_some_and(|id| !id.is_null()) {
                expect(message, "id", &id(), &mut violations);
            }
        }
    }
    (Some(kind), violations)
}

fn id() -> ValueShape {
    ValueShape::One(vec![
        ValueShape::String(StringFormat::Any),
        ValueShape::Integer(None),
    ])
}

fn expect(
    message: &Map<String, Value>,
    name: &str,
    shape: &ValueShape,
    violations: &mut Vec<SchemaViolation>,
) {
    let alternatives = match shape {
        ValueShape::One(shapes) => shapes.as_slice(),
        one => std::slice::from_ref(one),
    };
    match message.get(name) {
        Some(value)
            if alternatives
                .iter()
                .any(|shape| super::validator::fits(shape, value)) => {}
        Some(value) => violations.push(mismatch(name, shape, value)),
        None => {
            let observed =
                violation_text::missing(&schema_set::SchemaSet::default(), shape, name, message);
            violations.push(violation(name, &observed));
        }
    }
}

fn mismatch(path: &str, shape: &ValueShape, value: &Value) -> SchemaViolation {
    violation(
        path,
        &violation_text::mismatch(&schema_set::SchemaSet::default(), shape, value),
    )
}

fn violation(path: &str, observed: &str) -> SchemaViolation {
    SchemaViolation {
        path: path.to_owned(),
        observed: observed.to_owned(),
    }
}
