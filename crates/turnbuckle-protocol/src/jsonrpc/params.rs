//! The parameters of a request or notification.

use std::borrow::Cow;

use serde::Deserialize;

use super::scan::{Fault, Scanner, Span};
use super::{Object, RpcError};
use crate::json;

const META: &str = "_meta";

/// Parameters as received: absent, or an object whose members were found during the scan.
#[derive(Clone, Debug, Default)]
pub struct Params<'a> {
    object: Option<Object<'a>>,
    /// The members of `_meta`, where the scan came by it.
    meta: Option<Object<'a>>,
}

impl<'a> Params<'a> {
    /// Returns parameters that are not there.
    pub fn absent() -> Self {
        Self::default()
    }

    /// Finds the members of a JSON object; anything else is refused with an error to answer with.
    pub fn from_json(json: &'a str) -> Result<Self, RpcError> {
        Object::parse(json).map(Self::from)
    }

    /// Says whether the message has no `params`.
    pub fn is_absent(&self) -> bool {
        self.object.is_none()
    }

    /// Returns the JSON text as received, `{}` when absent.
    pub fn raw(&self) -> &'a str {
        self.object.as_ref().map_or("{}", Object::raw)
    }

    /// Returns the raw JSON text of a top-level member; the name is compared exactly.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.object.as_ref()?.get(name)
    }

    /// Returns what a string member says; a member that is not a string is refused with -32602.
    pub fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, RpcError> {
        match &self.object {
            Some(object) => object.string(name),
            None => Ok(None),
        }
    }

    /// Reads all of it into a type; what does not fit is refused with -32602.
    pub fn parse<T: Deserialize<'a>>(&self) -> Result<T, RpcError> {
        json::from_str(self.raw()).map_err(RpcError::from)
    }

    /// Passes the object at hand, which lies inside `depth` open containers, and notes what it finds.
    pub(super) fn fill(&mut self, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), Fault> {
        let Self { object, meta } = self;
        let object = object.insert(Object::empty());
        object.fill(scanner, |scanner, key| {
            if scanner.slice(key) != META || scanner.peek() != Some(b'{') {
                return scanner.skip_value(depth + 1);
            }
            let start = scanner.position();
            let inner = meta.insert(Object::empty());
            inner.fill(scanner, |scanner, _| scanner.skip_value(depth + 2))?;
            let end = scanner.position();
            Ok(Span { start, end })
        })
    }

    /// Returns the raw JSON text of `_meta`.
    pub fn meta(&self) -> Option<&'a str> {
        self.get(META)
    }

    /// Returns the members of `_meta`; one that is not an object is refused with -32602.
    pub fn meta_object(&self) -> Result<Option<Cow<'_, Object<'a>>>, RpcError> {
        if let Some(meta) = &self.meta {
            return match meta.duplicate() {
                Some(error) => Err(error),
                None => Ok(Some(Cow::Borrowed(meta))),
            };
        }
        // Not there, not an object, or its name is spelled with escapes.
        let parsed = self.meta().map(Object::parse).transpose()?;
        Ok(parsed.map(Cow::Owned))
    }

    /// Returns the object with its members, unless absent.
    pub fn object(&self) -> Option<&Object<'a>> {
        self.object.as_ref()
    }
}

impl<'a> From<Object<'a>> for Params<'a> {
    fn from(object: Object<'a>) -> Self {
        Self {
            object: Some(object),
            meta: None,
        }
    }
}
