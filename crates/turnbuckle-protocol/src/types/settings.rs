//! Objects whose members are objects too, by names that the specification leaves open.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Unexpected, Visitor},
};
use serde_json::Value;

use super::JsonObject;

/// Reads an object that may be absent or null, and has no member that is an array.
///
/// Other values are passed on: there are peers that declare an experimental capability as `true`.
pub(super) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<JsonObject>, D::Error> {
    let settings = Option::<Settings>::deserialize(deserializer)?;
    Ok(settings.map(|settings| settings.0))
}

/// Any value but an array.
struct Setting(Value);

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Array(_) => Err(D::Error::invalid_type(Unexpected::Seq, &"object")),
            value => Ok(Self(value)),
        }
    }
}

/// An object of them.
struct Settings(JsonObject);

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SettingsVisitor)
    }
}

struct SettingsVisitor;

impl<'de> Visitor<'de> for SettingsVisitor {
    type Value = Settings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
        let mut settings = JsonObject::new();
        while let Some((name, Setting(value))) = map.next_entry()? {
            settings.insert(name, value);
        }
        Ok(Settings(settings))
    }
}
