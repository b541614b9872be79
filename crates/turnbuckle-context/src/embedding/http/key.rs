//! What lets us in, and is never shown.

use std::fmt;

use hyper::header::HeaderValue;

use super::Problem;

/// The key to an endpoint; prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(HeaderValue);

impl ApiKey {
    /// Takes a key; one that cannot stand in a header is refused.
    pub fn new(key: &str) -> Result<Self, Problem> {
        let key = key.trim();
        if key.is_empty() {
            return Err(Problem::BadKey);
        }
        let mut value =
            HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| Problem::BadKey)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// The value of the header `Authorization`.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// Takes the key out of what a server says; some repeat it.
    pub(super) fn hide(&self, text: &str) -> String {
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
