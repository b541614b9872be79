//! Header values: text, and arguments that are repeated in `Mcp-Param-*` headers.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::jsonrpc::{Integer, string_value};

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// The reason why a header value cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHeaderValue {
    /// A character that is not allowed in a header value.
    #[error("a plain header value must be visible ASCII")]
    Character,
    /// The text between the markers is not canonical, padded, standard Base64.
    #[error("malformed Base64 between `=?base64?` and `?=`")]
    Base64,
    /// The encoded text is not UTF-8.
    #[error("the encoded text is not UTF-8")]
    Utf8,
}

/// Encodes a text as the value of `Mcp-Name` or `Mcp-Param-*`.
///
/// ```
/// use turnbuckle_protocol::codec::headers::encode;
///
/// assert_eq!(encode("us-west1"), "us-west1");
/// assert_eq!(encode(" padded "), "=?base64?IHBhZGRlZCA=?=");
/// ```
pub fn encode(text: &str) -> Cow<'_, str> {
    let visible = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let like_encoded = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    if visible && !padded && !like_encoded {
        return Cow::Borrowed(text);
    }
    let mut value = PREFIX.to_owned();
    STANDARD.encode_string(text, &mut value);
    value.push_str(SUFFIX);
    Cow::Owned(value)
}

/// Decodes a header value; surrounding whitespace is ignored.
///
/// A marker in other case, or one without the other, is plain text.
pub fn decode(value: &str) -> Result<Cow<'_, str>, InvalidHeaderValue> {
    let value = value.trim_matches([' ', '\t']);
    let inner = value
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX));
    let Some(inner) = inner else {
        let plain = value
            .bytes()
            .all(|byte| matches!(byte, 0x20..=0x7e | b'\t'));
        return plain
            .then_some(Cow::Borrowed(value))
            .ok_or(InvalidHeaderValue::Character);
    };
    let bytes = STANDARD
        .decode(inner)
        .map_err(|_| InvalidHeaderValue::Base64)?;
    let text = String::from_utf8(bytes).map_err(|_| InvalidHeaderValue::Utf8)?;
    Ok(Cow::Owned(text))
}

/// The maximum integer in a header; larger ones may be rounded by the receiver.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The reason why a header does not match the argument it repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderMismatch {
    /// The argument is present, but the header is missing.
    #[error("the header is missing")]
    Missing,
    /// The header is present, but the argument is missing or has a type that cannot be sent in a header.
    #[error("the argument does not exist")]
    Unexpected,
    /// The values differ.
    #[error("the header differs from the argument")]
    Different,
    /// The argument is an integer beyond ±(2^53-1).
    #[error("the integer is beyond ±(2^53-1)")]
    OutOfRange,
    /// The header cannot be decoded.
    #[error("the header is malformed")]
    Malformed(#[from] InvalidHeaderValue),
}

/// The reason why an argument cannot be sent in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnencodableArgument {
    /// An integer beyond ±(2^53-1).
    #[error("the integer is beyond ±(2^53-1)")]
    OutOfRange,
    /// Neither string, integer, boolean nor null.
    #[error("only strings, integers and booleans can be repeated in a header")]
    Kind,
}

/// Compares a header as received with the raw JSON text of the argument it repeats.
///
/// A missing or null argument is sent without a header. Integers are compared as numbers, everything else exactly. An
/// argument of another type needs no header: it violates the schema of the tool, and that error is more helpful.
pub fn check_argument(header: Option<&str>, argument: Option<&str>) -> Result<(), HeaderMismatch> {
    let argument = argument.map_or(HeaderArgument::Absent, HeaderArgument::read);
    match (header, argument) {
        (None, HeaderArgument::Absent | HeaderArgument::Other) => Ok(()),
        (None, _) => Err(HeaderMismatch::Missing),
        (Some(header), argument) => argument.equals(&decode(header)?),
    }
}

/// Encodes the raw JSON text of an argument as a header value. Returns `None` for null, which is not sent.
pub fn encode_argument(argument: &str) -> Result<Option<Cow<'_, str>>, UnencodableArgument> {
    match HeaderArgument::read(argument) {
        HeaderArgument::Absent => Ok(None),
        HeaderArgument::Text(Cow::Borrowed(text)) => Ok(Some(encode(text))),
        HeaderArgument::Text(Cow::Owned(text)) => Ok(Some(Cow::Owned(encode(&text).into_owned()))),
        HeaderArgument::Boolean(value) => Ok(Some(Cow::Borrowed(value))),
        HeaderArgument::Integer(value) => match in_range(&value) {
            Some(value) => Ok(Some(Cow::Owned(value.to_string()))),
            None => Err(UnencodableArgument::OutOfRange),
        },
        HeaderArgument::Other => Err(UnencodableArgument::Kind),
    }
}

/// An argument, by the types that headers support.
enum HeaderArgument<'a> {
    Absent,
    Text(Cow<'a, str>),
    Integer(Integer),
    Boolean(&'static str),
    Other,
}

impl<'a> HeaderArgument<'a> {
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

    fn equals(&self, header: &str) -> Result<(), HeaderMismatch> {
        let equal = match self {
            Self::Absent | Self::Other => return Err(HeaderMismatch::Unexpected),
            Self::Text(text) => text == header,
            Self::Boolean(value) => *value == header,
            Self::Integer(value) if in_range(value).is_none() => {
                return Err(HeaderMismatch::OutOfRange);
            }
            Self::Integer(value) => Integer::from_json(header).as_ref() == Some(value),
        };
        equal.then_some(()).ok_or(HeaderMismatch::Different)
    }
}

fn in_range(integer: &Integer) -> Option<i64> {
    match integer {
        Integer::Small(value) if value.unsigned_abs() <= MAX_INTEGER => Some(*value),
        Integer::Small(_) | Integer::BigInteger(_) => None,
    }
}
