//! The parameters of a request or notification.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    RawMembers, RawObject, RpcError,
    object::{MemberIndex, TextRange},
    scan::{ScanError, Scanner, Span},
};
use crate::json;

const META: &str = "_meta";

/// Parameters as received: absent, or an object with indexed members.
#[derive(Clone, Debug, Default)]
pub struct Params<'a> {
    object: Option<RawObject<'a>>,
    /// The members of `_meta`, if the scan found it.
    meta: Option<RawObject<'a>>,
}

impl<'a> Params<'a> {
    /// Returns absent parameters.
    pub fn absent() -> Self {
        Self::default()
    }

    /// Indexes the members of a JSON object, or returns the error to respond with.
    pub fn from_json(json: &'a str) -> Result<Self, RpcError> {
        RawObject::parse(json).map(Self::from)
    }

    /// Returns whether the message lacks `params`.
    pub fn is_absent(&self) -> bool {
        self.object.is_none()
    }

    /// Returns the JSON text as received, `{}` when absent.
    pub fn raw(&self) -> &'a str {
        self.object.as_ref().map_or("{}", RawObject::raw)
    }

    /// Returns the raw JSON text of a top-level member; the name is compared exactly.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.object.as_ref()?.get(name)
    }

    /// Returns the text of a string member, or error -32602 if it is not a string.
    pub fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, RpcError> {
        match &self.object {
            Some(object) => object.string(name),
            None => Ok(None),
        }
    }

    /// Deserializes the parameters, or returns error -32602.
    pub fn parse<T: Deserialize<'a>>(&self) -> Result<T, RpcError> {
        json::from_str(self.raw()).map_err(RpcError::from)
    }

    /// Scans the current object, which is inside `depth` open containers, and records its members.
    pub(super) fn fill(
        &mut self,
        scanner: &mut Scanner<'a>,
        depth: usize,
    ) -> Result<(), ScanError> {
        let Self { object, meta } = self;
        let object = object.insert(RawObject::empty());
        object.fill(scanner, |scanner, key| {
            if scanner.slice(key) != META || scanner.peek() != Some(b'{') {
                return scanner.skip_value(depth + 1);
            }
            let start = scanner.position();
            let inner = meta.insert(RawObject::empty());
            inner.fill(scanner, |scanner, _| scanner.skip_value(depth + 2))?;
            let end = scanner.position();
            Ok(Span { start, end })
        })
    }

    /// Returns the raw JSON text of `_meta`.
    pub fn meta(&self) -> Option<&'a str> {
        self.get(META)
    }

    /// Returns the members of `_meta`, or error -32602 if it is not an object.
    pub fn meta_object(&self) -> Result<Option<Cow<'_, RawObject<'a>>>, RpcError> {
        if let Some(meta) = &self.meta {
            return match meta.duplicate() {
                Some(error) => Err(error),
                None => Ok(Some(Cow::Borrowed(meta))),
            };
        }
        // Absent, not an object, or its name contains escapes.
        let parsed = self.meta().map(RawObject::parse).transpose()?;
        Ok(parsed.map(Cow::Owned))
    }

    /// Iterates over the members in the order received; over none when absent.
    pub fn members(&self) -> RawMembers<'a, '_> {
        let object = self.object.as_ref();
        object.map_or_else(RawMembers::empty, RawObject::members)
    }

    /// Returns the object, unless absent.
    pub fn object(&self) -> Option<&RawObject<'a>> {
        self.object.as_ref()
    }
}

impl<'a> From<RawObject<'a>> for Params<'a> {
    fn from(object: RawObject<'a>) -> Self {
        Self {
            object: Some(object),
            meta: None,
        }
    }
}

/// A copy of [`Params`] that owns its text. It is not scanned again.
#[derive(Clone, Debug)]
pub struct OwnedParams {
    text: Box<str>,
    /// The members, unless absent.
    members: Option<MemberIndex>,
    /// The position and the members of `_meta`, if the scan found it.
    meta: Option<(TextRange, MemberIndex)>,
}

impl OwnedParams {
    /// Returns the parameters.
    pub fn as_params(&self) -> Params<'_> {
        let object = |text, members: &MemberIndex| RawObject::indexed(text, members.clone());
        let members = self.members.as_ref();
        let meta = self.meta.as_ref();
        Params {
            object: members.map(|members| object(&self.text, members)),
            meta: meta.map(|(position, members)| object(position.slice(&self.text), members)),
        }
    }

    /// Returns the JSON text, `{}` when absent.
    pub fn raw(&self) -> &str {
        &self.text
    }
}

impl From<&Params<'_>> for OwnedParams {
    fn from(params: &Params<'_>) -> Self {
        let object = params.object.as_ref();
        let meta = params.meta.as_ref();
        Self {
            text: params.raw().into(),
            members: object.map(|object| object.index().clone()),
            meta: meta.and_then(|meta| Some((object?.position(META)?, meta.index().clone()))),
        }
    }
}
