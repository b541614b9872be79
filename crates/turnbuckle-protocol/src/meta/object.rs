//! An object that somebody sent: text until somebody looks into it, as hardly anybody ever does.

use std::{fmt, sync::OnceLock};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::jsonrpc::plain_length;

/// How many levels it may have: those that can be read again.
const LEVELS: u8 = 127;

/// How names begin that mean something else to those who read the text.
const NOT_A_NAME: &str = "$serde_json::private::";

/// A JSON object.
#[derive(Clone)]
pub(super) struct Object {
    /// Nothing if it was never text.
    text: String,
    read: OnceLock<Map<String, Value>>,
}

impl Object {
    pub(super) fn get(&self) -> &Map<String, Value> {
        self.read.get_or_init(|| read(&self.text))
    }

    pub(super) fn into_inner(self) -> Map<String, Value> {
        let Self { text, read: known } = self;
        known.into_inner().unwrap_or_else(|| read(&text))
    }

    /// Says whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.text == "{}" || self.read.get().is_some_and(Map::is_empty)
    }
}

/// Reads what was written here, so that it can be read.
fn read(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

impl From<Map<String, Value>> for Object {
    fn from(map: Map<String, Value>) -> Self {
        Self {
            text: String::new(),
            read: map.into(),
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;

        impl<'de> Visitor<'de> for Whole {
            type Value = String;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<String, A::Error> {
                let mut text = String::with_capacity(128);
                Copied::into(&mut text).visit_map(map)?;
                Ok(text)
            }
        }

        Ok(Self {
            text: deserializer.deserialize_map(Whole)?,
            read: OnceLock::new(),
        })
    }
}

/// Writes down a value as it is read, whatever it is read from.
struct Copied<'t> {
    text: &'t mut String,
    /// How many levels there may be from here on.
    levels: u8,
}

impl<'t> Copied<'t> {
    fn into(text: &'t mut String) -> Self {
        let levels = LEVELS;
        Self { text, levels }
    }

    /// Goes one level down.
    fn inside<E: Error>(self) -> Result<Self, E> {
        let Self { text, levels } = self;
        let left = levels.checked_sub(1);
        let levels = left.ok_or_else(|| E::custom("nested too deep"))?;
        Ok(Self { text, levels })
    }

    /// The same, for one part of it.
    fn part(&mut self) -> Copied<'_> {
        Copied {
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

impl<'de> DeserializeSeed<'de> for Copied<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Copied<'_> {
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
        // Nothing in it needs an escape, as in nearly all of them.
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
            if map.next_key_seed(Name(inside.part()))?.is_none() {
                inside.text.truncate(before);
                inside.text.push('}');
                return Ok(());
            }
            inside.text.push(':');
            map.next_value_seed(inside.part())?;
        }
    }
}

/// The name of a member, which is text in every format.
struct Name<'t>(Copied<'t>);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        match name.starts_with(NOT_A_NAME) {
            true => Err(E::custom(
                "a member that only looks like a number or like JSON",
            )),
            false => self.0.visit_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::value::{self, MapDeserializer};
    use serde_json::json;

    use super::*;

    fn of(text: &str) -> serde_json::Result<Object> {
        serde_json::from_str(text)
    }

    #[test]
    fn what_was_sent_is_what_is_read() {
        let text = r#"{"a":[1,-2,3.5,1e300,18446744073709551615,true,null,[],[[]],{}],"b":{"c\"\n\u0000":"é\ud83d\ude00"},"":""}"#;
        let expected: Map<String, Value> = serde_json::from_str(text).unwrap();

        let from_text = of(text).unwrap();
        let from_value: Object = serde_json::from_value(Value::Object(expected.clone())).unwrap();

        assert_eq!(*from_text.get(), expected);
        assert_eq!(from_text.get().keys().collect::<Vec<_>>(), ["a", "b", ""]);
        assert_eq!(from_text, from_value);
        assert_eq!(from_text.into_inner(), expected);
    }

    #[test]
    fn the_last_of_two_of_one_name_counts() {
        let object = of(r#"{"a":1,"b":2,"a":3}"#).unwrap();

        assert_eq!(Value::from(object.into_inner()), json!({ "a": 3, "b": 2 }));
    }

    #[test]
    fn what_is_no_object_or_cannot_be_kept_is_refused() {
        for text in [
            "[]",
            "7",
            "\"a\"",
            r#"{"a":1e400}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":}"#,
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn it_nests_as_deep_as_any_json() {
        for depth in 110..140 {
            let text = format!(r#"{{"a":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
            let expected = serde_json::from_str::<Map<String, Value>>(&text);

            match (of(&text), expected) {
                (Ok(object), Ok(expected)) => assert_eq!(*object.get(), expected),
                (object, expected) => assert_eq!(object.is_ok(), expected.is_ok(), "{depth}"),
            }
        }
        assert!(of(&format!(r#"{{"a":{}"#, "[".repeat(100_000))).is_err());
    }

    #[test]
    fn what_could_not_be_read_again_is_refused_wherever_it_comes_from() {
        let nested = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let numbered = MapDeserializer::<_, value::Error>::new([(7_u32, 1)].into_iter());

        assert!(serde_json::from_value::<Object>(json!({ "a": nested })).is_err());
        assert!(Object::deserialize(numbered).is_err());
        for token in ["RawValue", "Number"] {
            let text = format!(r#"{{"keep":1,"a":{{"$serde_json::private::{token}":"nope"}}}}"#);
            assert!(of(&text).is_err(), "{token}");
        }
    }

    #[test]
    fn numbers_come_through_exactly() {
        for number in [0.945_270_695_553_922_3, 1e-7, 5e-324, f64::MAX, -0.0, 1.5] {
            let object: Object = serde_json::from_value(json!({ "a": number })).unwrap();
            assert_eq!(object.get()["a"], json!(number));
        }
    }

    #[test]
    fn it_looks_the_same_before_and_after_somebody_looked() {
        let object = of(r#"{"a":1}"#).unwrap();

        let before = format!("{object:?}");
        object.get();

        assert_eq!(before, format!("{object:?}"));
        assert_eq!(before, format!("{:?}", Object::from(object.get().clone())));
    }

    #[test]
    fn nothing_is_seen_without_reading() {
        assert!(of("{}").unwrap().is_empty());
        assert!(of(" { } ").unwrap().is_empty());
        assert!(!of(r#"{"a":{}}"#).unwrap().is_empty());
        assert!(Object::from(Map::new()).is_empty());
    }
}
