//! Finds the path of a value by the indices of the members and items that lead to it.

use std::fmt::{self, Write};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor},
};

use super::error::Found;
use crate::jsonrpc::Excerpt;

/// A value inside another one.
#[derive(Default)]
pub(super) struct Place {
    /// `legs[1].days`
    pub(super) path: String,
    /// What is there, unless the path ends before it.
    pub(super) found: Option<String>,
}

/// Follows the steps as far as they lead.
pub(super) fn find<'de, D: Deserializer<'de>>(steps: &[usize], source: D) -> Place {
    let mut place = Place::default();
    let walk = Walk {
        steps,
        place: &mut place,
    };
    // It ends with an error as soon as the place is found, and with one where the JSON does.
    let _ = walk.deserialize(source);
    place
}

struct Walk<'s, 'p> {
    steps: &'s [usize],
    place: &'p mut Place,
}

impl Walk<'_, '_> {
    /// Ends the walk at a value, which is what was looked for if there are no more steps.
    fn end<E: Error>(self, found: Unexpected<'_>) -> E {
        if self.steps.is_empty() {
            self.place.found = Some(Found(found).to_string());
        }
        E::custom("located")
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
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
        let place = self.place;
        let _ = write!(place.path, "[{index}]");
        items.next_element_seed(Walk { steps, place })?;
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
        let place = self.place;
        if !place.path.is_empty() {
            place.path.push('.');
        }
        let _ = write!(place.path, "{}", Excerpt(&name));
        members.next_value_seed(Walk { steps, place })
    }
}
