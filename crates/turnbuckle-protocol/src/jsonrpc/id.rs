//! Request ids: a string or an integer, repeated as received and compared by value.

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

use super::{json_string::string_value, scan::Scanner};

/// The id of a request; also the type of a progress token.
///
/// Two ids are equal if their values are: `1`, `1.0` and `1e0` are the same id, and so are `"a"` and `"\u0061"`. Each
/// is written back in the bytes received, regardless of its size.
///
/// Deserialize it from JSON text or a JSON value: the spelling is lost inside `untagged` or internally tagged enums,
/// which therefore return an error.
#[derive(Clone)]
pub struct RequestId(IdRepr);

#[derive(Clone)]
enum IdRepr {
    /// An integer in its shortest form.
    Int(i64),
    /// A string without unusual escapes.
    Text(Arc<str>),
    /// A value in another spelling, or above 64 bits.
    VerbatimId(Arc<VerbatimId>),
}

struct VerbatimId {
    json: String,
    value: VerbatimValue,
}

enum VerbatimValue {
    Number(Integer),
    Text(String),
}

/// The value for comparisons.
#[derive(PartialEq, Eq, Hash)]
enum IdValue<'a> {
    Int(i64),
    BigInteger(&'a BigInteger),
    Text(&'a str),
}

/// The JSON value is neither a string nor an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id must be a string or an integer")]
pub struct InvalidRequestId;

impl RequestId {
    /// Parses an id from the JSON text of one value.
    pub fn from_json(json: &str) -> Result<Self, InvalidRequestId> {
        let mut scanner = Scanner::new(json.as_bytes()).map_err(|_| InvalidRequestId)?;
        let value = scanner.skip_value(0).map_err(|_| InvalidRequestId)?;
        scanner.finish().map_err(|_| InvalidRequestId)?;
        Self::from_scanned(scanner.slice(value))
    }

    /// Parses an id from one value of a scanned message.
    pub(super) fn from_scanned(json: &str) -> Result<Self, InvalidRequestId> {
        match json.as_bytes().first() {
            Some(b'"') => Self::from_json_string(json),
            Some(b'-' | b'0'..=b'9') => Self::from_json_number(json),
            _ => Err(InvalidRequestId),
        }
    }

    /// Returns the id as JSON text, as received.
    pub fn raw(&self) -> Cow<'_, str> {
        match &self.0 {
            IdRepr::VerbatimId(verbatim) => Cow::Borrowed(&verbatim.json),
            IdRepr::Int(value) => Cow::Owned(value.to_string()),
            IdRepr::Text(_) => {
                let mut json = Vec::new();
                self.write(&mut json);
                Cow::Owned(String::from_utf8_lossy(&json).into_owned())
            }
        }
    }

    /// Appends the id as JSON text, as received.
    pub fn write(&self, out: &mut Vec<u8>) {
        let written = match &self.0 {
            IdRepr::Int(value) => serde_json::to_writer(out, value),
            IdRepr::Text(text) => serde_json::to_writer(out, text.as_ref()),
            IdRepr::VerbatimId(verbatim) => {
                out.extend_from_slice(verbatim.json.as_bytes());
                Ok(())
            }
        };
        written
            .expect("numbers and strings serialize to JSON, and writing to a vector cannot fail");
    }

    /// Returns the number, if the id is one of at most 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.value() {
            IdValue::Int(value) => Some(value),
            IdValue::BigInteger(_) | IdValue::Text(_) => None,
        }
    }

    /// Returns the text, if the id is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self.value() {
            IdValue::Text(text) => Some(text),
            IdValue::Int(_) | IdValue::BigInteger(_) => None,
        }
    }

    /// Returns the id of the other JSON type with the same text: `"1"` for `1`, and `1` for `"1"`.
    ///
    /// The two are different ids. Some peers convert one to the other, so that their responses belong to no request.
    pub fn of_other_type(&self) -> Option<Self> {
        match self.value() {
            IdValue::Int(value) => Some(Self::from(value.to_string())),
            IdValue::Text(text) => {
                let value: i64 = text.parse().ok()?;
                (value.to_string() == text).then(|| Self::from(value))
            }
            IdValue::BigInteger(_) => None,
        }
    }

    /// Returns the JSON type: `string` or `number`.
    pub fn type_name(&self) -> &'static str {
        match self.value() {
            IdValue::Text(_) => "string",
            IdValue::Int(_) | IdValue::BigInteger(_) => "number",
        }
    }

    fn from_json_string(json: &str) -> Result<Self, InvalidRequestId> {
        match string_value(json).ok_or(InvalidRequestId)? {
            Cow::Borrowed(text) => Ok(Self::from(text)),
            Cow::Owned(text) => Ok(Self::verbatim(json, VerbatimValue::Text(text))),
        }
    }

    fn from_json_number(json: &str) -> Result<Self, InvalidRequestId> {
        // Of all JSON integers only `-0` would be printed differently.
        if let Some(value) = json.parse().ok().filter(|_| json != "-0") {
            return Ok(Self(IdRepr::Int(value)));
        }
        let value = Integer::from_scanned(json).ok_or(InvalidRequestId)?;
        Ok(Self::verbatim(json, VerbatimValue::Number(value)))
    }

    fn verbatim(json: &str, value: VerbatimValue) -> Self {
        let json = json.to_owned();
        Self(IdRepr::VerbatimId(Arc::new(VerbatimId { json, value })))
    }

    fn value(&self) -> IdValue<'_> {
        match &self.0 {
            IdRepr::Int(value) => IdValue::Int(*value),
            IdRepr::Text(text) => IdValue::Text(text),
            IdRepr::VerbatimId(verbatim) => match &verbatim.value {
                VerbatimValue::Number(Integer::Small(value)) => IdValue::Int(*value),
                VerbatimValue::Number(Integer::BigInteger(big)) => IdValue::BigInteger(big),
                VerbatimValue::Text(text) => IdValue::Text(text),
            },
        }
    }
}

impl From<i64> for RequestId {
    fn from(value: i64) -> Self {
        Self(IdRepr::Int(value))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(IdRepr::Text(text.into()))
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self(IdRepr::Text(text.into()))
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

/// Writes the JSON text, so that `1` and `"1"` differ.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IdRepr::Int(value) => value.fmt(f),
            IdRepr::Text(_) | IdRepr::VerbatimId(_) => f.write_str(&self.raw()),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            IdRepr::Int(value) => serializer.serialize_i64(*value),
            IdRepr::Text(text) => serializer.serialize_str(text),
            IdRepr::VerbatimId(verbatim) => {
                let json = RawValue::from_string(verbatim.json.clone());
                json.map_err(serde::ser::Error::custom)?
                    .serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(json.get()).map_err(D::Error::custom)
    }
}

/// The exact value of a JSON number without a fraction.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Integer {
    /// At most 64 bits.
    Small(i64),
    /// More than 64 bits.
    BigInteger(BigInteger),
}

/// An integer above 64 bits: digits without leading and trailing zeros, times a power of ten.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BigInteger {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Integer {
    /// Parses a text that is exactly one JSON number.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let starts = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let mut scanner = Scanner::new(text.as_bytes()).ok().filter(|_| starts)?;
        let number = scanner.skip_value(0).ok()?;
        (number.end == text.len()).then(|| Self::from_scanned(text))?
    }

    /// Parses a scanned number. Returns `None` if it has a fraction.
    ///
    /// An exponent above 64 bits counts as a fraction, so that comparison stays exact.
    pub(super) fn from_scanned(json: &str) -> Option<Self> {
        let unsigned = json.trim_start_matches('-');
        let negative = unsigned.len() < json.len();
        let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

        let all = [whole, fraction].concat();
        let kept = all.trim_end_matches('0');
        let zeros = all.len() - kept.len();
        let digits = kept.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Self::Small(0));
        }

        let power: i64 = power.parse().ok()?;
        let shift = i64::try_from(zeros).ok()? - i64::try_from(fraction.len()).ok()?;
        let exponent = power.checked_add(shift).filter(|exponent| *exponent >= 0)?;
        Some(match small(negative, digits, exponent) {
            Some(value) => Self::Small(value),
            None => Self::BigInteger(BigInteger {
                negative,
                digits: digits.to_owned(),
                exponent,
            }),
        })
    }
}

fn small(negative: bool, digits: &str, exponent: i64) -> Option<i64> {
    let power = 10_i128.checked_pow(u32::try_from(exponent).ok()?)?;
    let magnitude = digits.parse::<i128>().ok()?.checked_mul(power)?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}
