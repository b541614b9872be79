//! Finds the path of a value from the indices of the members and items on the path.

use std::fmt::{self, Write};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor},
};

use super::error::FoundValue;
use crate::jsonrpc::Truncated;

/// The location of a value inside another one.
#[derive(Default)]
pub(super) struct ValueLocation {
    /// The path, for example `legs[1].days`.
    pub(super) path: String,
    /// The value there, unless the path ends before it.
    pub(super) found: Option<String>,
}

/// Follows the indices as far as possible.
pub(super) fn find<'de, D: Deserializer<'de>>(steps: &[usize], source: D) -> ValueLocation {
    let mut location = ValueLocation::default();
    let visitor = LocationVisitor {
        steps,
        location: &mut location,
    };
    // Always ends with an error: when the location is found, or where the JSON is invalid.
    let _ = visitor.deserialize(source);
    location
}

struct LocationVisitor<'s, 'p> {
    steps: &'s [usize],
    location: &'p mut ValueLocation,
}

impl LocationVisitor<'_, '_> {
    /// Stops at a value, which is the one searched for if no steps remain.
    fn end<E: Error>(self, found: Unexpected<'_>) -> E {
        if self.steps.is_empty() {
            self.location.found = Some(FoundValue(found).to_string());
        }
        E::custom("located")
    }
}

impl<'de> DeserializeSeed<'de> for LocationVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LocationVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        Err(self.end(Unexpected::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        Err(self.end(Unexpected::Signed(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        Err(self.end(Unexpected::Unsigned(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        Err(self.end(Unexpected::Float(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        Err(self.end(Unexpected::Str(value)))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Err(self.end(Unexpected::Unit))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some((&index, steps)) = self.steps.split_first() else {
            return Err(self.end(Unexpected::Seq));
        };
        for _ in 0..index {
            items.next_element::<IgnoredAny>()?;
        }
        let location = self.location;
        let _ = write!(location.path, "[{index}]");
        items.next_element_seed(LocationVisitor { steps, location })?;
        Err(A::Error::custom("nothing there"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Some((&index, steps)) = self.steps.split_first() else {
            return Err(self.end(Unexpected::Map));
        };
        for _ in 0..index {
            members.next_entry::<IgnoredAny, IgnoredAny>()?;
        }
        let Some(name) = members.next_key::<String>()? else {
            return Err(A::Error::custom("nothing there"));
        };
        let location = self.location;
        if !location.path.is_empty() {
            location.path.push('.');
        }
        let _ = write!(location.path, "{}", Truncated(&name));
        members.next_value_seed(LocationVisitor { steps, location })
    }
}
