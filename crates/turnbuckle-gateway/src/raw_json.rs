//! JSON objects that are edited as text, so that unknown members keep their bytes.

use std::borrow::Cow;

use serde_json::{Map, Value, value::RawValue};
use turnbuckle_protocol::{
    RpcError, json,
    jsonrpc::{RawObject, needs_no_escapes},
};

/// Writes a JSON object member by member.
pub(crate) struct ObjectWriter {
    out: String,
}

impl ObjectWriter {
    pub(crate) fn new() -> Self {
        Self {
            out: String::from("{"),
        }
    }

    /// Creates a writer for about this many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut out = String::with_capacity(bytes);
        out.push('{');
        Self { out }
    }

    /// Writes a member with a value that is JSON text.
    pub(crate) fn member(&mut self, name: &str, value: &str) {
        self.separate();
        write_string(&mut self.out, name);
        self.out.push(':');
        self.out.push_str(value);
    }

    /// Copies a member of a [`RawObject`].
    pub(crate) fn copy(&mut self, (name, value): (Cow<'_, str>, &str)) {
        match name {
            // A name that was decoded without a copy is the text as received.
            Cow::Borrowed(name) => {
                self.separate();
                self.out.push('"');
                self.out.push_str(name);
                self.out.push_str("\":");
                self.out.push_str(value);
            }
            Cow::Owned(name) => self.member(&name, value),
        }
    }

    /// Writes members that are JSON text without braces.
    pub(crate) fn members(&mut self, members: &str) {
        self.separate();
        self.out.push_str(members);
    }

    fn separate(&mut self) {
        if self.out.len() > 1 {
            self.out.push(',');
        }
    }

    /// Writes a member with a string.
    pub(crate) fn string(&mut self, name: &str, value: &str) {
        self.member(name, &quote(value));
    }

    pub(crate) fn finish(mut self) -> String {
        self.out.push('}');
        self.out
    }

    /// Returns the members without braces.
    pub(crate) fn into_members(mut self) -> String {
        self.out.remove(0);
        self.out
    }
}

/// Returns a JSON string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

fn write_string(out: &mut String, text: &str) {
    if !needs_no_escapes(text) {
        out.push_str(&serde_json::Value::from(text).to_string());
        return;
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Copies an object, without some of its members and with others replaced or added at the end.
pub(crate) fn edit(
    object: &str,
    remove: &[&str],
    set: &[(&str, String)],
) -> Result<String, RpcError> {
    let object = RawObject::parse(object)?;
    let set: Vec<_> = set.iter().map(|(name, value)| (*name, &**value)).collect();
    Ok(edit_object(&object, remove, &set))
}

/// Like [`edit`], for an object that is parsed.
pub(crate) fn edit_object(object: &RawObject<'_>, remove: &[&str], set: &[(&str, &str)]) -> String {
    let added: usize = set
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    let mut out = ObjectWriter::with_capacity(object.raw().len() + added);
    let replaced = |name: &str| set.iter().find(|(set, _)| *set == name);
    for (name, value) in object
        .members()
        .filter(|(name, _)| !remove.contains(&&**name))
    {
        let value = replaced(&name).map_or(value, |(_, value)| value);
        out.copy((name, value));
    }
    for (name, value) in set.iter().filter(|(name, _)| object.get(name).is_none()) {
        out.member(name, value);
    }
    out.finish()
}

/// Applies the changes from `before` to `after` to the text that `before` was read from.
///
/// Members of `text` that `before` does not have were unknown to its reader, and stay; members that only `before` has are
/// removed. Numbers that do not change keep their spelling, and so does everything else.
pub(crate) fn apply_changes<'a>(text: &'a str, before: &Value, after: &Value) -> Cow<'a, str> {
    let changed = match (before, after) {
        (Value::Object(before), Value::Object(after)) if text.starts_with('{') => {
            changed_object(text, before, after)
        }
        (Value::Array(before), Value::Array(after)) => changed_array(text, before, after),
        // One item may be written as an array.
        (Value::Object(_), Value::Object(_)) => match elements(text).as_deref() {
            Some([only]) => Some(Cow::Owned(apply_changes(only, before, after).into_owned())),
            _ => None,
        },
        _ if before == after && JsonKind::from_text(text) == JsonKind::from_value(after) => {
            Some(Cow::Borrowed(text))
        }
        _ => None,
    };
    changed.unwrap_or_else(|| Cow::Owned(after.to_string()))
}

fn changed_object<'a>(
    text: &'a str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Option<Cow<'a, str>> {
    let object = RawObject::parse(text).ok()?;
    let (mut out, mut is_changed) = (ObjectWriter::with_capacity(text.len()), false);
    for (name, value) in object.members() {
        let value = match (before.get(&*name), after.get(&*name)) {
            (Some(before), Some(after)) => apply_changes(value, before, after),
            (None, None) => Cow::Borrowed(value),
            (None, Some(after)) => Cow::Owned(after.to_string()),
            (Some(_), None) => {
                is_changed = true;
                continue;
            }
        };
        is_changed |= matches!(value, Cow::Owned(_));
        out.member(&name, &value);
    }
    for (name, value) in after {
        // A member that is written although the text does not have it has its default value.
        if object.get(name).is_none() && before.get(name) != Some(value) {
            is_changed = true;
            out.member(name, &value.to_string());
        }
    }
    Some(if is_changed {
        Cow::Owned(out.finish())
    } else {
        Cow::Borrowed(text)
    })
}

fn changed_array<'a>(text: &'a str, before: &[Value], after: &[Value]) -> Option<Cow<'a, str>> {
    let elements = elements(text).filter(|elements| elements.len() == before.len())?;
    let mut pairs = before.iter().zip(elements);
    let values: Vec<_> = after
        .iter()
        .map(|after_item| {
            let pair = if before.len() == after.len() {
                pairs.next()
            } else {
                // Items were added, removed or split. Others are found by their values.
                let mut rest = pairs.clone();
                let found = rest.find(|(before_item, _)| *before_item == after_item);
                if found.is_some() {
                    pairs = rest;
                }
                found
            };
            match pair {
                Some((before_item, text)) => apply_changes(text, before_item, after_item),
                None => Cow::Owned(after_item.to_string()),
            }
        })
        .collect();
    let is_borrowed = |value: &Cow<'_, str>| matches!(value, Cow::Borrowed(_));
    if before.len() == after.len() && values.iter().all(is_borrowed) {
        return Some(Cow::Borrowed(text));
    }
    Some(Cow::Owned(format!("[{}]", values.join(","))))
}

/// Returns the elements of an array.
fn elements(text: &str) -> Option<Vec<&str>> {
    let elements: Vec<&RawValue> = json::from_str(text).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Container,
}

impl JsonKind {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) | Value::Object(_) => Self::Container,
        }
    }

    fn from_text(text: &str) -> Self {
        match text.as_bytes().first() {
            Some(b'n') => Self::Null,
            Some(b't' | b'f') => Self::Bool,
            Some(b'"') => Self::String,
            Some(b'{' | b'[') => Self::Container,
            _ => Self::Number,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Applies the changes between two values to a text.
    fn changed(text: &str, before: &Value, after: &Value) -> String {
        apply_changes(text, before, after).into_owned()
    }

    #[test]
    fn an_equal_value_keeps_its_text() {
        let text = r#"{"a" : [1.0, 1e3 ,{"x":null}],"u" : 1}"#;
        let known = json!({ "a": [1, 1000.0, {}] });
        assert_eq!(changed(text, &known, &known), text);
    }

    #[test]
    fn only_what_differs_changes() {
        let text = r#"{"a":1.0,"b":{"c": 2.0,"u":3.0},"d":[{"u" : 4.0}]}"#;
        let before = json!({ "a": 1, "b": { "c": 2 }, "d": [{}], "default": false });
        let after = json!({ "b": { "e": 5 }, "d": [{}], "default": false, "f": 6 });
        let expected = r#"{"b":{"u":3.0,"e":5},"d":[{"u" : 4.0}],"f":6}"#;
        assert_eq!(changed(text, &before, &after), expected);
    }

    #[test]
    fn items_that_remain_of_an_array_keep_their_text() {
        let text = r#"[{"n":1,"u":1.0},{"n":2,"u":2.0},{"n":3,"u":3.0}]"#;
        let before = json!([{ "n": 1 }, { "n": 2 }, { "n": 3 }]);
        let after = json!([{ "n": 1 }, { "n": 9 }, { "n": 9 }, { "n": 3 }]);
        let expected = r#"[{"n":1,"u":1.0},{"n":9},{"n":9},{"n":3,"u":3.0}]"#;
        assert_eq!(changed(text, &before, &after), expected);
    }

    #[test]
    fn a_text_of_another_kind_is_replaced() {
        assert_eq!(changed("null", &json!([]), &json!([])), "[]");
        assert_eq!(changed(r#""1""#, &json!(1), &json!(1)), "1");
        assert_eq!(
            changed(r#"{"a":1,"a":2}"#, &json!({}), &json!({ "b": 1 })),
            r#"{"b":1}"#
        );
    }

    #[test]
    fn other_members_keep_their_bytes() {
        let object = r#"{"a": 1.50 ,"b":{"c" : [1, 2]},"d":"\u0041"}"#;
        let edited = edit(object, &["a"], &[("d", "7".into()), ("e", "8".into())]);
        assert_eq!(edited.unwrap(), r#"{"b":{"c" : [1, 2]},"d":7,"e":8}"#);
    }

    #[test]
    fn a_quoted_text_is_what_serde_json_writes() {
        for text in ["", "name", "é", "a\"b", "a\\b", "a\nb", "\u{7f}", "\u{0}"] {
            assert_eq!(quote(text), serde_json::to_string(text).unwrap());
        }
    }

    #[test]
    fn an_array_is_not_edited() {
        assert!(edit("[1]", &[], &[]).is_err());
    }
}
