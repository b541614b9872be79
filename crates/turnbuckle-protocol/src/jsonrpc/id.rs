//! The id of a request: a string or an integer, echoed as received and compared by value.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::scan::Scanner;
use super::text::string_value;

/// The id of a request, and also the type of a progress token.
///
/// Two ids are equal when their values are: `1`, `1.0` and `1e0` name the same request, and so do `"a"`
/// and `"\u0061"`. Each is written back in the bytes received, whatever its size.
///
/// Deserializing needs a JSON text or a JSON value as the source: the exact spelling is lost inside
/// `untagged` or internally tagged enums, which therefore refuse it.
#[derive(Clone)]
pub struct RequestId(Form);

#[derive(Clone)]
enum Form {
    /// An integer in its shortest spelling.
    Int(i64),
    /// A string that is spelled the way we would.
    Text(Arc<str>),
    /// A value in an unusual spelling, or beyond 64 bits.
    Unusual(Arc<Unusual>),
}

struct Unusual {
    json: String,
    value: UnusualValue,
}

enum UnusualValue {
    Int(i64),
    Huge(Huge),
    Text(String),
}

/// An integer beyond 64 bits: digits without a zero at either end, times a power of ten.
#[derive(PartialEq, Eq, Hash)]
struct Huge {
    negative: bool,
    digits: String,
    exponent: i64,
}

/// What two ids are compared by.
#[derive(PartialEq, Eq, Hash)]
enum Value<'a> {
    Int(i64),
    Huge(&'a Huge),
    Text(&'a str),
}

/// The JSON value is neither a string nor an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id must be a string or an integer")]
pub struct InvalidId;

impl RequestId {
    /// Reads an id from the JSON text of one value.
    pub fn from_json(json: &str) -> Result<Self, InvalidId> {
        let mut scanner = Scanner::new(json.as_bytes()).map_err(|_| InvalidId)?;
        let value = scanner.skip_value(0).map_err(|_| InvalidId)?;
        scanner.finish().map_err(|_| InvalidId)?;
        Self::from_scanned(scanner.slice(value))
    }

    /// Reads an id from one value of a scanned message.
    pub(super) fn from_scanned(json: &str) -> Result<Self, InvalidId> {
        match json.as_bytes().first() {
            Some(b'"') => Self::from_json_string(json),
            Some(b'-' | b'0'..=b'9') => Self::from_json_number(json),
            _ => Err(InvalidId),
        }
    }

    /// Returns the id as JSON text, as received.
    pub fn raw(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Unusual(unusual) => Cow::Borrowed(&unusual.json),
            Form::Int(value) => Cow::Owned(value.to_string()),
            Form::Text(_) => {
                let mut json = Vec::new();
                self.write(&mut json);
                Cow::Owned(String::from_utf8_lossy(&json).into_owned())
            }
        }
    }

    /// Appends the id as JSON text, as received.
    pub fn write(&self, out: &mut Vec<u8>) {
        let written = match &self.0 {
            Form::Int(value) => serde_json::to_writer(out, value),
            Form::Text(text) => serde_json::to_writer(out, text.as_ref()),
            Form::Unusual(unusual) => {
                out.extend_from_slice(unusual.json.as_bytes());
                Ok(())
            }
        };
        written.expect("numbers and strings are always JSON, and a vector takes every write");
    }

    /// Returns the number, if the id is one of at most 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.value() {
            Value::Int(value) => Some(value),
            Value::Huge(_) | Value::Text(_) => None,
        }
    }

    /// Returns the text, if the id is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self.value() {
            Value::Text(text) => Some(text),
            Value::Int(_) | Value::Huge(_) => None,
        }
    }

    fn from_json_string(json: &str) -> Result<Self, InvalidId> {
        match string_value(json).ok_or(InvalidId)? {
            Cow::Borrowed(text) => Ok(Self::from(text)),
            Cow::Owned(text) => Ok(Self::unusual(json, UnusualValue::Text(text))),
        }
    }

    fn from_json_number(json: &str) -> Result<Self, InvalidId> {
        if let Some(value) = shortest_integer(json) {
            return Ok(Self::from(value));
        }
        let value = decimal(json).ok_or(InvalidId)?;
        Ok(Self::unusual(json, value))
    }

    fn unusual(json: &str, value: UnusualValue) -> Self {
        let json = json.to_owned();
        Self(Form::Unusual(Arc::new(Unusual { json, value })))
    }

    fn value(&self) -> Value<'_> {
        match &self.0 {
            Form::Int(value) => Value::Int(*value),
            Form::Text(text) => Value::Text(text),
            Form::Unusual(unusual) => match &unusual.value {
                UnusualValue::Int(value) => Value::Int(*value),
                UnusualValue::Huge(huge) => Value::Huge(huge),
                UnusualValue::Text(text) => Value::Text(text),
            },
        }
    }
}

/// Reads an integer that is written in the only way we would write it.
fn shortest_integer(json: &str) -> Option<i64> {
    let value: i64 = json.parse().ok()?;
    // Of what JSON allows only `-0` differs from the number printed.
    (json != "-0").then_some(value)
}

/// Reads a JSON number as an exact integer, or `None` if it has a fraction.
fn decimal(json: &str) -> Option<UnusualValue> {
    let (negative, unsigned) = match json.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, json),
    };
    let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    let shift = digits.len() - significant.len();
    let digits = significant.trim_start_matches('0');
    if digits.is_empty() {
        return Some(UnusualValue::Int(0));
    }

    // An exponent beyond 64 bits is refused, so that comparing stays exact.
    let power: i64 = power.parse().ok()?;
    let exponent = power
        .checked_add(shift as i64)?
        .checked_sub(fraction.len() as i64)?;
    if exponent < 0 {
        return None;
    }
    Some(match small(negative, digits, exponent) {
        Some(value) => UnusualValue::Int(value),
        None => UnusualValue::Huge(Huge {
            negative,
            digits: digits.to_owned(),
            exponent,
        }),
    })
}

fn small(negative: bool, digits: &str, exponent: i64) -> Option<i64> {
    let power = u32::try_from(exponent).ok()?;
    let magnitude = digits
        .parse::<i128>()
        .ok()?
        .checked_mul(10_i128.checked_pow(power)?)?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

impl From<i64> for RequestId {
    fn from(value: i64) -> Self {
        Self(Form::Int(value))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(Form::Text(text.into()))
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self(Form::Text(text.into()))
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

/// Shows the JSON text, so that `1` and `"1"` can be told apart.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Int(value) => value.fmt(f),
            Form::Text(_) | Form::Unusual(_) => f.write_str(&self.raw()),
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
            Form::Int(value) => serializer.serialize_i64(*value),
            Form::Text(text) => serializer.serialize_str(text),
            Form::Unusual(unusual) => {
                let json = RawValue::from_string(unusual.json.clone());
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
