//! Deserializes JSON and distinguishes arrays from objects.
//!
//! Structs that derive `Deserialize` also accept an array of their fields in order, which MCP does not allow. The
//! functions here reject an array where a struct or a map is expected, at every depth. Errors have the path, the
//! expectation and the value found, in the terms of JSON.
//!
//! Values that serde buffers (inside `untagged` and internally tagged enums, and flattened structs) are read from the
//! buffer of serde, so nested structs in those still accept arrays. No wire type contains any.

mod error;
mod locate;
mod reader;

#[cfg(test)]
mod tests;

pub use error::JsonError;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed},
};
use serde_json::Value;

use self::reader::{FailureSlot, StrictReader};

/// Deserializes JSON text.
///
/// # Errors
///
/// If the text is not JSON, or does not match the type.
///
/// ```
/// use turnbuckle_protocol::{json, types::CompletionArgument};
///
/// assert!(json::from_str::<CompletionArgument>(r#"{"name":"tone","value":"f"}"#).is_ok());
///
/// let error = json::from_str::<CompletionArgument>(r#"["tone","f"]"#).unwrap_err();
/// assert_eq!(error.to_string(), "invalid type: array, expected object");
/// ```
pub fn from_str<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, JsonError> {
    let mut source = serde_json::Deserializer::from_str(json);
    let value = read(&mut source)
        .map_err(|error| error.located(&mut serde_json::Deserializer::from_str(json)))?;
    source.end().map_err(JsonError::from_display)?;
    Ok(value)
}

/// Deserializes JSON text from bytes.
///
/// # Errors
///
/// If the bytes are not JSON, or do not match the type.
pub fn from_slice<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, JsonError> {
    from_str(str::from_utf8(json).map_err(JsonError::from_display)?)
}

/// Deserializes a JSON value.
///
/// # Errors
///
/// If the value does not match the type.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, JsonError> {
    read(value).map_err(|error| error.located(value))
}

/// Deserializes from a deserializer of scalars; the error is without a path.
///
/// # Errors
///
/// If the value does not match the type.
pub fn from_deserializer<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    source: D,
) -> Result<T, JsonError> {
    read(source)
}

/// Deserializes an owned value, so that strings are moved; the error is without a path.
pub(crate) fn read_value_with<S: for<'de> DeserializeSeed<'de, Value = T>, T>(
    value: Value,
    seed: S,
) -> Result<T, JsonError> {
    seed.deserialize(StrictReader::new(value, &FailureSlot::default()))
}

fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(source: D) -> Result<T, JsonError> {
    T::deserialize(StrictReader::new(source, &FailureSlot::default()))
}
