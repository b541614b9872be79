//! How any text travels in a header value: plain, or as Base64 between two markers.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Why a header value does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadValue {
    /// A character that a header value cannot have.
    #[error("a plain header value must be visible ASCII")]
    Character,
    /// What stands between the markers is not canonical, padded, standard Base64.
    #[error("malformed Base64 between `=?base64?` and `?=`")]
    Base64,
    /// What was encoded is not UTF-8.
    #[error("the encoded text is not UTF-8")]
    Utf8,
}

/// Writes a text as the value of `Mcp-Name` or `Mcp-Param-*`.
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

/// Reads the text that a header value stands for; whitespace around the value is not part of it.
///
/// A marker in other letters, or one without the other, is plain text.
pub fn decode(value: &str) -> Result<Cow<'_, str>, BadValue> {
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
            .ok_or(BadValue::Character);
    };
    let bytes = STANDARD.decode(inner).map_err(|_| BadValue::Base64)?;
    let text = String::from_utf8(bytes).map_err(|_| BadValue::Utf8)?;
    Ok(Cow::Owned(text))
}
