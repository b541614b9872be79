//! The API key, which is never displayed.

use std::fmt;

use hyper::header::HeaderValue;

use super::EmbeddingError;

/// An API key; its `Debug` output is `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(HeaderValue);

impl ApiKey {
    /// Creates an API key. Fails if it cannot be sent in a header.
    pub fn new(key: &str) -> Result<Self, EmbeddingError> {
        let key = key.trim();
        if key.is_empty() {
            return Err(EmbeddingError::InvalidApiKey);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {key}"))
            .map_err(|_| EmbeddingError::InvalidApiKey)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Returns the value of the `Authorization` header.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// Removes the key from a server message; some servers repeat it.
    pub(super) fn redact(&self, text: &str) -> String {
        let key = self.0.to_str().unwrap_or_default();
        let key = key.strip_prefix("Bearer ").unwrap_or(key);
        text.replace(key, "***")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
