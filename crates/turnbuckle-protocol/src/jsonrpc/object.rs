//! A JSON object of which only the places of its members are known.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;

use super::RpcError;
use super::error::Excerpt;
use super::scan::{Fault, Scanner, Span};
use super::text::{string_value, unescape};
use crate::json;

/// A JSON object as text, with its top-level members found.
///
/// Names are compared exactly, after escapes are resolved. No name occurs twice.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    text: &'a str,
    places: Places,
}

impl<'a> Object<'a> {
    /// Finds the members of an object; anything that is not one, or names a member twice, is refused.
    pub fn parse(json: &'a str) -> Result<Self, RpcError> {
        let mut scanner = Scanner::new(json.as_bytes())?;
        if scanner.peek() != Some(b'{') {
            scanner.skip_value(0)?;
            scanner.finish()?;
            return Err(RpcError::invalid_params("expected an object"));
        }
        let mut object = Self::empty();
        object.fill(&mut scanner, |scanner, _| scanner.skip_value(1))?;
        scanner.finish()?;
        match object.duplicate() {
            Some(error) => Err(error),
            None => Ok(object),
        }
    }

    pub(super) fn empty() -> Self {
        Self {
            text: "{}",
            places: Places::default(),
        }
    }

    /// Passes the object at hand and notes where its members are, without looking for duplicates. `pass` is given the
    /// name of each and passes its value.
    pub(super) fn fill(
        &mut self,
        scanner: &mut Scanner<'a>,
        mut pass: impl FnMut(&mut Scanner<'a>, Span) -> Result<Span, Fault>,
    ) -> Result<(), Fault> {
        let start = scanner.position();
        let mut key = scanner.first_key()?;
        while let Some(name) = key {
            let value = pass(scanner, name.span)?;
            self.places.push(Place::new(start, name.span, value));
            self.places.escaped |= name.escaped;
            key = scanner.next_key()?;
        }
        let end = scanner.position();
        self.text = scanner.slice(Span { start, end });
        Ok(())
    }

    /// Returns the whole object as it was received.
    pub fn raw(&self) -> &'a str {
        self.text
    }

    /// Returns the raw JSON text of a member.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let mut places = self.places.all().iter();
        let found = match self.places.escaped {
            false => places.find(|place| place.name.says(self.text, name)),
            true => places.find(|place| unescape(place.name.of(self.text)) == name),
        };
        found.map(|place| place.value.of(self.text))
    }

    /// Returns what a string member says; a member that is not a string is refused with -32602.
    pub fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, RpcError> {
        let Some(json) = self.get(name) else {
            return Ok(None);
        };
        match string_value(json) {
            Some(text) => Ok(Some(text)),
            None => Err(RpcError::invalid_params(format!(
                "`{name}` must be a string"
            ))),
        }
    }

    /// Walks over the members in the order received.
    pub fn members(&self) -> Members<'a, '_> {
        Members {
            text: self.text,
            places: self.places.all(),
        }
    }

    /// Reads the whole object into a type; what does not fit is refused with -32602.
    pub fn read<T: Deserialize<'a>>(&self) -> Result<T, RpcError> {
        json::from_str(self.text).map_err(RpcError::from)
    }

    /// Names a member that occurs twice, as the error to answer with.
    pub(super) fn duplicate(&self) -> Option<RpcError> {
        let name = self.duplicate_name()?;
        let message = format!("member `{}` occurs twice", Excerpt(&name));
        Some(RpcError::invalid_params(message))
    }

    fn duplicate_name(&self) -> Option<Cow<'a, str>> {
        if self.places.escaped || self.places.all().len() > INLINE {
            let mut seen = HashSet::new();
            let mut names = self.members().map(|(name, _)| name);
            return names.find(|name| !seen.insert(name.clone()));
        }
        // Few and plain: comparing each with those before it needs no memory.
        let places = self.places.all();
        let twice = |(index, place): (usize, &Place)| {
            let name = place.name.of(self.text);
            let mut earlier = places[..index].iter();
            let is_there = earlier.any(|place| place.name.says(self.text, name));
            is_there.then_some(Cow::Borrowed(name))
        };
        places.iter().enumerate().find_map(twice)
    }
}

/// The members of an [`Object`]: name with escapes resolved, value as raw JSON text.
#[derive(Clone, Debug)]
pub struct Members<'a, 'o> {
    text: &'a str,
    places: &'o [Place],
}

impl<'a> Iterator for Members<'a, '_> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (place, rest) = self.places.split_first()?;
        self.places = rest;
        Some((
            unescape(place.name.of(self.text)),
            place.value.of(self.text),
        ))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.places.len(), Some(self.places.len()))
    }
}

/// How many members need no memory of their own: the most that a request of the protocol has.
const INLINE: usize = 6;

/// Where the members lie, relative to the object.
#[derive(Clone, Debug, Default)]
struct Places {
    few: [Place; INLINE],
    count: usize,
    /// Holds all of them once there are more than fit in `few`.
    many: Vec<Place>,
    /// Some name is spelled with escapes.
    escaped: bool,
}

impl Places {
    fn push(&mut self, place: Place) {
        if let Some(slot) = self.few.get_mut(self.count) {
            *slot = place;
        } else {
            if self.many.is_empty() {
                self.many.extend(self.few);
            }
            self.many.push(place);
        }
        self.count += 1;
    }

    fn all(&self) -> &[Place] {
        match self.count {
            0..=INLINE => &self.few[..self.count],
            _ => &self.many,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    name: Range,
    value: Range,
}

impl Place {
    fn new(origin: usize, name: Span, value: Span) -> Self {
        Self {
            name: Range::new(origin, name),
            value: Range::new(origin, value),
        }
    }
}

/// A span in 32 bits, which the scanner guarantees to suffice.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    start: u32,
    end: u32,
}

impl Range {
    fn new(origin: usize, span: Span) -> Self {
        Self {
            start: (span.start - origin) as u32,
            end: (span.end - origin) as u32,
        }
    }

    fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// Whether this is there; most words differ in their length already.
    fn says(self, text: &str, word: &str) -> bool {
        (self.end - self.start) as usize == word.len() && self.of(text) == word
    }
}
