//! A JSON object with indexed top-level members.

use std::{borrow::Cow, collections::HashSet};

use serde::Deserialize;

use super::{
    RpcError,
    error::Truncated,
    json_string::{string_value, unescape},
    scan::{ScanError, Scanner, Span},
};
use crate::json;

/// A JSON object as text, with the positions of its top-level members.
///
/// Names are compared exactly, after escapes are decoded. Names are unique.
#[derive(Clone, Debug)]
pub struct RawObject<'a> {
    text: &'a str,
    members: MemberIndex,
}

impl<'a> RawObject<'a> {
    /// Indexes the members of an object. Other values and duplicate members are errors.
    pub fn parse(json: &'a str) -> Result<Self, RpcError> {
        let mut scanner = Scanner::of_text(json)?;
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
            members: MemberIndex::default(),
        }
    }

    /// Creates an object from its text and the positions of its members.
    pub(super) fn indexed(text: &'a str, members: MemberIndex) -> Self {
        Self { text, members }
    }

    /// Returns the positions of the members.
    pub(super) fn index(&self) -> &MemberIndex {
        &self.members
    }

    /// Scans the current object and records the positions of its members, without checking for duplicates. `pass` is
    /// called with the name of each and skips its value.
    pub(super) fn fill(
        &mut self,
        scanner: &mut Scanner<'a>,
        mut pass: impl FnMut(&mut Scanner<'a>, Span) -> Result<Span, ScanError>,
    ) -> Result<(), ScanError> {
        let start = scanner.position();
        let mut key = scanner.first_key()?;
        while let Some(name) = key {
            let value = pass(scanner, name.span)?;
            self.members.push(MemberSpan::new(start, name.span, value));
            self.members.escaped |= name.escaped;
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
        self.position(name).map(|range| range.slice(self.text))
    }

    /// Returns where the value of a member is in the text.
    pub(super) fn position(&self, name: &str) -> Option<TextRange> {
        let mut members = self.members.as_slice().iter();
        let found = if self.members.escaped {
            members.find(|member| unescape(member.name.slice(self.text)) == name)
        } else {
            members.find(|member| member.name.equals(self.text, name))
        };
        found.map(|member| member.value)
    }

    /// Returns the text of a string member, or error -32602 if it is not a string.
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

    /// Iterates over the members in the order received.
    pub fn members(&self) -> RawMembers<'a, '_> {
        RawMembers {
            text: self.text,
            members: self.members.as_slice(),
            escaped: self.members.escaped,
        }
    }

    /// Deserializes the whole object, or returns error -32602.
    pub fn read<T: Deserialize<'a>>(&self) -> Result<T, RpcError> {
        json::from_str(self.text).map_err(RpcError::from)
    }

    /// Returns the error for a duplicate member, if there is one.
    pub(super) fn duplicate(&self) -> Option<RpcError> {
        let name = self.duplicate_name()?;
        let message = format!("member `{}` occurs twice", Truncated(&name));
        Some(RpcError::invalid_params(message))
    }

    fn duplicate_name(&self) -> Option<Cow<'a, str>> {
        if self.members.escaped || self.members.as_slice().len() > MAX_INLINE_MEMBERS {
            let mut seen = HashSet::new();
            let mut names = self.members().map(|(name, _)| name);
            return names.find(|name| !seen.insert(name.clone()));
        }
        // For a few names without escapes, pairwise comparison avoids an allocation.
        let members = self.members.as_slice();
        let twice = |(index, member): (usize, &MemberSpan)| {
            let name = member.name.slice(self.text);
            let mut earlier = members[..index].iter();
            let is_duplicate = earlier.any(|member| member.name.equals(self.text, name));
            is_duplicate.then_some(Cow::Borrowed(name))
        };
        members.iter().enumerate().find_map(twice)
    }
}

impl Default for RawObject<'_> {
    /// Returns an object without members.
    fn default() -> Self {
        Self::empty()
    }
}

/// The members of a [`RawObject`]: decoded name, and value as raw JSON text.
#[derive(Clone, Debug)]
pub struct RawMembers<'a, 'o> {
    text: &'a str,
    members: &'o [MemberSpan],
    /// Set if a name contains escapes.
    escaped: bool,
}

impl RawMembers<'_, '_> {
    /// Returns an iterator without members.
    pub(super) fn empty() -> Self {
        Self {
            text: "{}",
            members: &[],
            escaped: false,
        }
    }
}

impl<'a> Iterator for RawMembers<'a, '_> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (member, rest) = self.members.split_first()?;
        self.members = rest;
        let name = member.name.slice(self.text);
        let name = if self.escaped {
            unescape(name)
        } else {
            Cow::Borrowed(name)
        };
        Some((name, member.value.slice(self.text)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.members.len(), Some(self.members.len()))
    }
}

/// The number of members that are stored inline: the maximum of any request of the protocol.
const MAX_INLINE_MEMBERS: usize = 6;

/// The positions of the members, relative to the object.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberIndex {
    inline: [MemberSpan; MAX_INLINE_MEMBERS],
    count: usize,
    /// Contains all members once there are more than fit in `inline`.
    spilled: Vec<MemberSpan>,
    /// Set if a name contains escapes.
    escaped: bool,
}

impl MemberIndex {
    fn push(&mut self, member: MemberSpan) {
        if let Some(slot) = self.inline.get_mut(self.count) {
            *slot = member;
        } else {
            if self.spilled.is_empty() {
                self.spilled.extend(self.inline);
            }
            self.spilled.push(member);
        }
        self.count += 1;
    }

    fn as_slice(&self) -> &[MemberSpan] {
        match self.count {
            0..=MAX_INLINE_MEMBERS => &self.inline[..self.count],
            _ => &self.spilled,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct MemberSpan {
    name: TextRange,
    value: TextRange,
}

impl MemberSpan {
    fn new(origin: usize, name: Span, value: Span) -> Self {
        Self {
            name: TextRange::new(origin, name),
            value: TextRange::new(origin, value),
        }
    }
}

/// A span in 32 bits; the scanner rejects longer input.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TextRange {
    start: u32,
    end: u32,
}

impl TextRange {
    fn new(origin: usize, span: Span) -> Self {
        Self {
            start: (span.start - origin) as u32,
            end: (span.end - origin) as u32,
        }
    }

    pub(super) fn slice(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// Returns whether the range contains this word. Compares lengths first, because most words differ in length.
    fn equals(self, text: &str, word: &str) -> bool {
        (self.end - self.start) as usize == word.len() && self.slice(text) == word
    }
}
