//! A received object that is parsed on first access, because most are never read.

use std::{fmt, sync::OnceLock};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::jsonrpc::plain_length;

/// The maximum depth that can be parsed again.
const MAX_DEPTH: u8 = 127;

/// The prefix of names with a special meaning in `serde_json`.
const RESERVED_NAME_PREFIX: &str = "$serde_json::private::";

/// A JSON object.
#[derive(Clone)]
pub(super) struct LazyObject {
    /// Empty if the object was never text.
    text: String,
    read: OnceLock<Map<String, Value>>,
}

impl LazyObject {
    pub(super) fn get(&self) -> &Map<String, Value> {
        self.read.get_or_init(|| read(&self.text))
    }

    pub(super) fn into_inner(self) -> Map<String, Value> {
        let Self { text, read: known } = self;
        known.into_inner().unwrap_or_else(|| read(&text))
    }

    /// Returns whether the object is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.text == "{}" || self.read.get().is_some_and(Map::is_empty)
    }
}

/// Parses text that this module has written.
fn read(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

impl From<Map<String, Value>> for LazyObject {
    fn from(map: Map<String, Value>) -> Self {
        Self {
            text: String::new(),
            read: map.into(),
        }
    }
}

impl fmt::Debug for LazyObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl PartialEq for LazyObject {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<'de> Deserialize<'de> for LazyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ParsedObject;

        impl<'de> Visitor<'de> for ParsedObject {
            type Value = String;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<String, A::Error> {
                let mut text = String::with_capacity(128);
                RawCopy::into(&mut text).visit_map(map)?;
                Ok(text)
            }
        }

        Ok(Self {
            text: deserializer.deserialize_map(ParsedObject)?,
            read: OnceLock::new(),
        })
    }
}

/// Copies a value to JSON text while it is deserialized, from any format.
struct RawCopy<'t> {
    text: &'t mut String,
    /// The remaining depth.
    levels: u8,
}

impl<'t> RawCopy<'t> {
    fn into(text: &'t mut String) -> Self {
        let levels = MAX_DEPTH;
        Self { text, levels }
    }

    /// Descends one level.
    fn inside<E: Error>(self) -> Result<Self, E> {
        let Self { text, levels } = self;
        let left = levels.checked_sub(1);
        let levels = left.ok_or_else(|| E::custom("nested too deeply"))?;
        Ok(Self { text, levels })
    }

    /// Reborrows for one part of the value.
    fn part(&mut self) -> RawCopy<'_> {
        RawCopy {
            text: self.text,
            levels: self.levels,
        }
    }

    fn write<E: Error>(self, value: impl serde::Serialize) -> Result<(), E> {
        let written = serde_json::to_string(&value).map_err(E::custom)?;
        self.text.push_str(&written);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for RawCopy<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RawCopy<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.write(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<(), E> {
        self.write(i64::try_from(value).map_err(E::custom)?)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        self.write(u64::try_from(value).map_err(E::custom)?)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        if plain_length(value.as_bytes()) < value.len() {
            return self.write(value);
        }
        // Most strings need no escapes.
        self.text.push('"');
        self.text.push_str(value);
        self.text.push('"');
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut inside = self.inside()?;
        inside.text.push('[');
        let begun = inside.text.len();
        loop {
            let before = inside.text.len();
            if before > begun {
                inside.text.push(',');
            }
            if seq.next_element_seed(inside.part())?.is_none() {
                inside.text.truncate(before);
                inside.text.push(']');
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut inside = self.inside()?;
        inside.text.push('{');
        let begun = inside.text.len();
        loop {
            let before = inside.text.len();
            if before > begun {
                inside.text.push(',');
            }
            if map.next_key_seed(NameCopy(inside.part()))?.is_none() {
                inside.text.truncate(before);
                inside.text.push('}');
                return Ok(());
            }
            inside.text.push(':');
            map.next_value_seed(inside.part())?;
        }
    }
}

/// Copies the name of a member, which is a string in every format.
struct NameCopy<'t>(RawCopy<'t>);

impl<'de> DeserializeSeed<'de> for NameCopy<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameCopy<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        if name.starts_with(RESERVED_NAME_PREFIX) {
            return Err(E::custom("a member with a name reserved for `serde_json`"));
        }
        self.0.visit_str(name)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::value::{self, MapDeserializer};
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> serde_json::Result<LazyObject> {
        serde_json::from_str(text)
    }

    #[test]
    fn sent_objects_are_received_unchanged() {
        let text = r#"{"a":[1,-2,3.5,1e300,18446744073709551615,true,null,[],[[]],{}],"b":{"c\"\n\u0000":"é\ud83d\ude00"},"":""}"#;
        let expected: Map<String, Value> = serde_json::from_str(text).unwrap();

        let from_text = parse(text).unwrap();
        let from_value: LazyObject =
            serde_json::from_value(Value::Object(expected.clone())).unwrap();

        assert_eq!(*from_text.get(), expected);
        assert_eq!(from_text.get().keys().collect::<Vec<_>>(), ["a", "b", ""]);
        assert_eq!(from_text, from_value);
        assert_eq!(from_text.into_inner(), expected);
    }

    #[test]
    fn the_last_of_two_equal_names_counts() {
        let object = parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();

        assert_eq!(Value::from(object.into_inner()), json!({ "a": 3, "b": 2 }));
    }

    #[test]
    fn other_values_and_deep_objects_are_rejected() {
        for text in [
            "[]",
            "7",
            "\"a\"",
            r#"{"a":1e400}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn it_may_be_as_deep_as_any_json() {
        for depth in 110..140 {
            let text = format!(r#"{{"a":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
            let expected = serde_json::from_str::<Map<String, Value>>(&text);

            match (parse(&text), expected) {
                (Ok(object), Ok(expected)) => assert_eq!(*object.get(), expected),
                (object, expected) => assert_eq!(object.is_ok(), expected.is_ok(), "{depth}"),
            }
        }
        assert!(parse(&format!(r#"{{"a":{}"#, "[".repeat(100_000))).is_err());
    }

    #[test]
    fn reserved_names_are_rejected_from_any_source() {
        let nested = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let numbered = MapDeserializer::<_, value::Error>::new([(7_u32, 1)].into_iter());

        assert!(serde_json::from_value::<LazyObject>(json!({ "a": nested })).is_err());
        assert!(LazyObject::deserialize(numbered).is_err());
        for token in ["RawValue", "Number"] {
            let text = format!(r#"{{"keep":1,"a":{{"$serde_json::private::{token}":"nope"}}}}"#);
            assert!(parse(&text).is_err(), "{token}");
        }
    }

    #[test]
    fn numbers_are_preserved_exactly() {
        for number in [0.945_270_695_553_922_3, 1e-7, 5e-324, f64::MAX, -0.0, 1.5] {
            let object: LazyObject = serde_json::from_value(json!({ "a": number })).unwrap();
            assert_eq!(object.get()["a"], json!(number));
        }
    }

    #[test]
    fn it_is_equal_before_and_after_access() {
        let object = parse(r#"{"a":1}"#).unwrap();

        let before = format!("{object:?}");
        object.get();

        assert_eq!(before, format!("{object:?}"));
        assert_eq!(
            before,
            format!("{:?}", LazyObject::from(object.get().clone()))
        );
    }

    #[test]
    fn emptiness_is_known_without_parsing() {
        assert!(parse("{}").unwrap().is_empty());
        assert!(parse(" { } ").unwrap().is_empty());
        assert!(!parse(r#"{"a":{}}"#).unwrap().is_empty());
        assert!(LazyObject::from(Map::new()).is_empty());
    }
}
