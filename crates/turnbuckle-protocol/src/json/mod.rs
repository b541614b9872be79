//! Reads JSON into types, with arrays kept apart from objects.
//!
//! Structs that derive `Deserialize` also accept an array of their fields in order, which is not what MCP says. The
//! functions here refuse an array wherever a struct or a map is expected, at every depth, and their errors name the path,
//! the expectation and the value found in JSON's words.
//!
//! Values that serde buffers on the way (inside `untagged` and internally tagged enums, and flattened structs) are read
//! from serde's buffer and not from here, so nested structs in those still accept arrays. No wire type has any.

mod error;
mod locate;
mod reader;

#[cfg(test)]
mod tests;

pub use error::ReadError;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed},
};
use serde_json::Value;

use self::reader::{Failure, Reader};

/// Reads JSON text.
///
/// # Errors
///
/// If the text is not JSON, or does not fit the type.
///
/// ```
/// use turnbuckle_protocol::{json, types::CompletionArgument};
///
/// assert!(json::from_str::<CompletionArgument>(r#"{"name":"tone","value":"f"}"#).is_ok());
///
/// let error = json::from_str::<CompletionArgument>(r#"["tone","f"]"#).unwrap_err();
/// assert_eq!(error.to_string(), "invalid type: array, expected object");
/// ```
pub fn from_str<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, ReadError> {
    let mut source = serde_json::Deserializer::from_str(json);
    let value = read(&mut source)
        .map_err(|error| error.located(&mut serde_json::Deserializer::from_str(json)))?;
    source.end().map_err(ReadError::of)?;
    Ok(value)
}

/// Reads a JSON value.
///
/// # Errors
///
/// If it does not fit the type.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, ReadError> {
    read(value).map_err(|error| error.located(value))
}

/// Reads from a deserializer of strings, numbers and the like; the error has no path.
///
/// # Errors
///
/// If what is there does not fit the type.
pub fn from_deserializer<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    source: D,
) -> Result<T, ReadError> {
    read(source)
}

/// Reads a value that is not needed any more, so that its strings are moved; the error has no path.
pub(crate) fn read_value_with<S: for<'de> DeserializeSeed<'de, Value = T>, T>(
    value: Value,
    seed: S,
) -> Result<T, ReadError> {
    seed.deserialize(Reader::new(value, &Failure::default()))
}

fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(source: D) -> Result<T, ReadError> {
    T::deserialize(Reader::new(source, &Failure::default()))
}
