//! The entries of a `_meta`, built only when somebody looks at them.

use std::fmt;
use std::sync::OnceLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Meta;

/// Entries, or the text that they are in.
///
/// Every result of a modern server says who answers, and hardly anybody asks.
#[derive(Clone, Default)]
pub(super) struct Entries {
    text: Option<Box<RawValue>>,
    built: OnceLock<Map<String, Value>>,
}

impl Entries {
    pub(super) fn get(&self) -> &Map<String, Value> {
        self.built.get_or_init(|| read(self.text.as_deref()))
    }

    pub(super) fn get_mut(&mut self) -> &mut Map<String, Value> {
        self.get();
        // What it says will no longer hold.
        self.text = None;
        self.built.get_mut().expect("built by the first line")
    }
}

/// A number beyond all that a JSON value in memory can hold leaves nothing to read.
fn read(text: Option<&RawValue>) -> Map<String, Value> {
    text.and_then(|text| serde_json::from_str(text.get()).ok())
        .unwrap_or_default()
}

impl From<Map<String, Value>> for Entries {
    fn from(map: Map<String, Value>) -> Self {
        Self {
            text: None,
            built: map.into(),
        }
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Keeps a `_meta` as the text it is, until somebody looks at it. Its source must be JSON text or a JSON value.
pub(crate) fn unread<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Meta, D::Error> {
    let Some(text) = Option::<Box<RawValue>>::deserialize(deserializer)? else {
        return Ok(Meta::default());
    };
    let inside = text
        .get()
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    match inside {
        None => Err(D::Error::custom("`_meta` must be an object")),
        Some(members) if members.trim_ascii().is_empty() => Ok(Meta::default()),
        Some(_) => Ok(Meta(Some(Box::new(Entries {
            text: Some(text),
            built: OnceLock::new(),
        })))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::meta::Meta;
    use crate::types::CallToolResult;

    fn meta(json: &str) -> serde_json::Result<Meta> {
        let result = format!(r#"{{"content":[],"_meta":{json}}}"#);
        Ok(serde_json::from_str::<CallToolResult>(&result)?.meta)
    }

    #[test]
    fn what_was_not_read_reads_as_if_it_had_been() {
        for json in [r#"{"b": {"c": [1]}, "a": null}"#, "{ }", "{}", "null"] {
            let unread = meta(json).unwrap();
            let read: Meta = serde_json::from_str(json).unwrap();

            assert_eq!(unread.is_empty(), read.is_empty(), "{json}");
            assert_eq!(format!("{unread:?}"), format!("{read:?}"));
            assert_eq!(unread, read);
            assert_eq!(
                serde_json::to_string(&unread).unwrap(),
                serde_json::to_string(&read).unwrap()
            );
        }
    }

    #[test]
    fn what_was_not_read_can_be_changed() {
        let mut meta = meta(r#"{"a":1,"b":2}"#).unwrap();

        meta.insert("example.com/c", 3).unwrap();
        assert_eq!(meta.remove("a"), Some(json!(1)));
        assert_eq!(
            serde_json::to_value(&meta).unwrap(),
            json!({ "b": 2, "example.com/c": 3 })
        );
        meta.remove("b");
        meta.remove("example.com/c");
        assert!(meta.is_empty());
    }

    #[test]
    fn only_an_object_is_taken() {
        for json in ["[]", "7", r#""{}""#, "{,}"] {
            assert!(meta(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_value_in_memory_will_do_as_well() {
        let result = json!({ "content": [], "_meta": { "a": 1 } });

        let result: CallToolResult = serde_json::from_value(result).unwrap();

        assert_eq!(result.meta.get("a"), Some(&json!(1)));
    }
}
