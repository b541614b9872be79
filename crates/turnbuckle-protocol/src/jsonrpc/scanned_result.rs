//! The result of an answer, and its kind, both found in the one pass over the bytes.

use super::scan::{Fault, Scanner, Span};
use super::text::{string_value, unescape};
use crate::types::ResultType;

const RESULT_TYPE: &str = "resultType";

/// A result as raw JSON text.
pub(super) struct ScannedResult<'a> {
    pub(super) json: &'a str,
    kind: Kind<'a>,
}

/// What a result says about its kind.
enum Kind<'a> {
    Unsaid,
    Said(&'a str),
    /// It is said twice, or of something that is no object.
    Doubtful,
}

impl<'a> ScannedResult<'a> {
    /// Passes the value at hand, which lies inside `depth` open containers.
    pub(super) fn scan(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, Fault> {
        let start = scanner.position();
        let kind = match scanner.peek() {
            Some(b'{') => Kind::scan(scanner, depth + 1)?,
            _ => {
                scanner.skip_value(depth)?;
                Kind::Doubtful
            }
        };
        let end = scanner.position();
        let json = scanner.slice(Span { start, end });
        Ok(Self { json, kind })
    }

    /// Returns the kind, unless it is in doubt.
    pub(super) fn kind(&self) -> Option<ResultType> {
        match self.kind {
            Kind::Unsaid => Some(ResultType::Complete),
            Kind::Said(json) => string_value(json).map(ResultType::named),
            Kind::Doubtful => None,
        }
    }
}

impl<'a> Kind<'a> {
    /// Walks the members of the object at hand; each lies inside `depth` open containers.
    fn scan(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, Fault> {
        let mut kind = Self::Unsaid;
        let mut key = scanner.first_key()?;
        while let Some(name) = key {
            let raw = scanner.slice(name.span);
            let says = raw == RESULT_TYPE || name.escaped && unescape(raw) == RESULT_TYPE;
            let value = scanner.pass(depth)?;
            if says {
                kind = match kind {
                    Self::Unsaid => Self::Said(value),
                    Self::Said(_) | Self::Doubtful => Self::Doubtful,
                };
            }
            key = scanner.next_key()?;
        }
        Ok(kind)
    }
}
