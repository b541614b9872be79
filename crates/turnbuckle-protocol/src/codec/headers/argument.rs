//! Arguments that are repeated in `Mcp-Param-*` headers.

use std::borrow::Cow;

use super::value::{BadValue, decode, encode};
use crate::jsonrpc::{Integer, string_value};

/// The largest integer that may travel in a header: beyond it readers may round.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Why a header does not agree with the argument it repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The argument is there, the header is not.
    #[error("the header is missing")]
    Missing,
    /// The header is there, the argument is not, or it is of a kind that no header can repeat.
    #[error("there is no such argument")]
    Unexpected,
    /// Both are there and differ.
    #[error("the header differs from the argument")]
    Different,
    /// The argument is an integer beyond ±(2^53-1).
    #[error("the integer is beyond ±(2^53-1)")]
    OutOfRange,
    /// The header does not decode.
    #[error("the header is malformed")]
    Malformed(#[from] BadValue),
}

/// Why an argument cannot be put into a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsendable {
    /// An integer beyond ±(2^53-1).
    #[error("the integer is beyond ±(2^53-1)")]
    OutOfRange,
    /// Neither string, integer, boolean nor null.
    #[error("only strings, integers and booleans can be repeated in a header")]
    Kind,
}

/// Compares a header as received with the raw JSON text of the argument it repeats.
///
/// An argument that is missing or null has no header. Integers are compared as numbers, everything else
/// exactly. An argument of another kind needs no header: it breaks the tool's schema, and saying that
/// helps more.
pub fn check_argument(header: Option<&str>, argument: Option<&str>) -> Result<(), Mismatch> {
    let argument = argument.map_or(Argument::Absent, Argument::read);
    match (header, argument) {
        (None, Argument::Absent | Argument::Other) => Ok(()),
        (None, _) => Err(Mismatch::Missing),
        (Some(header), argument) => argument.equals(&decode(header)?),
    }
}

/// Writes the raw JSON text of an argument as a header value; `None` for null, which has no header.
pub fn encode_argument(argument: &str) -> Result<Option<Cow<'_, str>>, Unsendable> {
    match Argument::read(argument) {
        Argument::Absent => Ok(None),
        Argument::Text(Cow::Borrowed(text)) => Ok(Some(encode(text))),
        Argument::Text(Cow::Owned(text)) => Ok(Some(Cow::Owned(encode(&text).into_owned()))),
        Argument::Boolean(value) => Ok(Some(Cow::Borrowed(value))),
        Argument::Integer(value) => match in_range(&value) {
            Some(value) => Ok(Some(Cow::Owned(value.to_string()))),
            None => Err(Unsendable::OutOfRange),
        },
        Argument::Other => Err(Unsendable::Kind),
    }
}

/// An argument, as far as headers go.
enum Argument<'a> {
    Absent,
    Text(Cow<'a, str>),
    Integer(Integer),
    Boolean(&'static str),
    Other,
}

impl<'a> Argument<'a> {
    fn read(json: &'a str) -> Self {
        match json.trim_ascii() {
            "null" => Self::Absent,
            "true" => Self::Boolean("true"),
            "false" => Self::Boolean("false"),
            json => match (string_value(json), Integer::from_json(json)) {
                (Some(text), _) => Self::Text(text),
                (None, Some(integer)) => Self::Integer(integer),
                (None, None) => Self::Other,
            },
        }
    }

    fn equals(&self, header: &str) -> Result<(), Mismatch> {
        let equal = match self {
            Self::Absent | Self::Other => return Err(Mismatch::Unexpected),
            Self::Text(text) => text == header,
            Self::Boolean(value) => *value == header,
            Self::Integer(value) if in_range(value).is_none() => return Err(Mismatch::OutOfRange),
            Self::Integer(value) => Integer::from_json(header).as_ref() == Some(value),
        };
        equal.then_some(()).ok_or(Mismatch::Different)
    }
}

fn in_range(integer: &Integer) -> Option<i64> {
    match integer {
        Integer::Small(value) if value.unsigned_abs() <= MAX_INTEGER => Some(*value),
        Integer::Small(_) | Integer::Huge(_) => None,
    }
}
