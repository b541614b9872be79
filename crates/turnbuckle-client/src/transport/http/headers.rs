//! Configured headers of every request, such as a token; their values are never printed.

use std::fmt;

use ::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
        CONTENT_TYPE, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};

use crate::transport::http::url::UrlOrigin;

/// The user agent, because some servers reject requests without one.
const DEFAULT_USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("turnbuckle/", env!("CARGO_PKG_VERSION")));

/// Initial capacity, so that the map does not have to grow.
const HEADER_CAPACITY: usize = 12;

/// The headers of every request; their values print as `***`.
#[derive(Clone)]
pub(crate) struct BaseHeaders {
    all: HeaderMap,
    /// Headers without a value; each request sets or removes them.
    placeholders: &'static [HeaderName],
}

/// A header cannot be sent with every request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequestHeader {
    /// The name is not a valid header name.
    #[error("`{name}` is not a valid header name")]
    Name {
        /// The name of the header.
        name: String,
    },
    /// The value contains a line break or another control character.
    #[error("the value of the header `{name}` contains an invalid character")]
    Value {
        /// The name of the header; the value may be a secret.
        name: String,
    },
    /// The header is set by the protocol.
    #[error("the header `{name}` is reserved for the protocol")]
    Reserved {
        /// The name of the header.
        name: String,
    },
}

impl BaseHeaders {
    pub(crate) fn new() -> Self {
        Self {
            all: HeaderMap::from_iter([(USER_AGENT, DEFAULT_USER_AGENT)]),
            placeholders: &[],
        }
    }

    /// Sets `Host`, and disables compression: a small body could expand beyond all limits.
    pub(crate) fn set_host(&mut self, origin: &UrlOrigin) {
        if !self.all.contains_key(HOST) {
            self.all.insert(HOST, origin.host_header());
        }
        let identity = HeaderValue::from_static("identity");
        self.all.insert(ACCEPT_ENCODING, identity);
    }

    /// Adds a header in addition to those with the same name, except the default user agent.
    pub(crate) fn add(&mut self, name: &str, value: &str) -> Result<(), InvalidRequestHeader> {
        let owned = || name.to_owned();
        let key: HeaderName = name
            .parse()
            .map_err(|_| InvalidRequestHeader::Name { name: owned() })?;
        if is_reserved(&key) {
            return Err(InvalidRequestHeader::Reserved { name: owned() });
        }
        let value = HeaderValue::from_str(value);
        let mut value = value.map_err(|_| InvalidRequestHeader::Value { name: owned() })?;
        value.set_sensitive(true);
        if key == USER_AGENT {
            self.all.remove(USER_AGENT);
        }
        self.all.append(key, value);
        Ok(())
    }

    /// Returns whether an `Authorization` header is configured.
    pub(crate) fn has_authorization(&self) -> bool {
        self.all.contains_key(AUTHORIZATION)
    }

    /// Returns the headers of one request; its own headers take precedence.
    pub(crate) fn with(&self, own: &[(HeaderName, HeaderValue)], length: usize) -> HeaderMap {
        let mut all = self.all.clone();
        for (name, value) in own {
            all.insert(name, value.clone());
        }
        for placeholder in self.placeholders {
            if !own.iter().any(|(name, _)| name == placeholder) {
                all.remove(placeholder);
            }
        }
        if let Some(placeholder) = all.get_mut(CONTENT_LENGTH) {
            // Cheaper than the conversion from a number, which allocates twice.
            if let Ok(length) = HeaderValue::try_from(length.to_string()) {
                *placeholder = length;
            }
        }
        all
    }

    /// Adds the headers that requests with a body have in common. Copying the result is cheaper than building it each
    /// time.
    ///
    /// Headers with a different value in each request get a placeholder, like the content length: adding them later
    /// would move the others.
    pub(crate) fn prepared(
        &self,
        common: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
        placeholders: &'static [HeaderName],
    ) -> Self {
        let mut all = HeaderMap::with_capacity(HEADER_CAPACITY);
        all.extend(self.all.clone());
        for placeholder in self.placeholders {
            all.remove(placeholder);
        }
        all.insert(CONTENT_LENGTH, 0.into());
        for (name, value) in common {
            all.insert(name, value);
        }
        for placeholder in placeholders {
            all.insert(placeholder, HeaderValue::from_static(""));
        }
        Self { all, placeholders }
    }
}

/// The headers of one request: prepared ones, if any, and its own, which take precedence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHeaders<'a> {
    pub(crate) prepared: Option<&'a BaseHeaders>,
    pub(crate) own: &'a [(HeaderName, HeaderValue)],
}

impl<'a> From<&'a [(HeaderName, HeaderValue)]> for RequestHeaders<'a> {
    fn from(own: &'a [(HeaderName, HeaderValue)]) -> Self {
        let prepared = None;
        Self { prepared, own }
    }
}

/// Returns whether a header is reserved for framing, content negotiation or MCP.
fn is_reserved(name: &HeaderName) -> bool {
    const MCP_HEADERS: [&str; 6] = [
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
        "keep-alive",
    ];
    let framing = [
        ACCEPT,
        ACCEPT_ENCODING,
        CONNECTION,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_TYPE,
        EXPECT,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    framing.contains(name)
        || MCP_HEADERS.contains(&name.as_str())
        || name.as_str().starts_with("mcp-param-")
}

impl fmt::Debug for BaseHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.all.keys().map(|name| (name, "***"));
        f.debug_map().entries(hidden).finish()
    }
}

#[cfg(test)]
mod tests {
    use ::http::header::{FROM, RANGE};

    use super::*;

    #[test]
    fn header_values_are_never_printed() {
        let mut headers = BaseHeaders::new();
        headers.add("Authorization", "Bearer sesame").unwrap();
        headers.add("X-Key", "sesame").unwrap();

        let shown = format!("{headers:?} {headers:#?} {:?}", headers.with(&[], 0));

        assert!(shown.contains("x-key"));
        assert!(!shown.contains("sesame"), "{shown}");
    }

    #[test]
    fn an_invalid_header_is_rejected_without_its_value() {
        let mut headers = BaseHeaders::new();

        let name = headers.add("X Key", "v").unwrap_err();
        let value = headers.add("X-Key", "sesame\r\nHost: evil").unwrap_err();

        assert!(matches!(name, InvalidRequestHeader::Name { .. }));
        assert!(matches!(value, InvalidRequestHeader::Value { .. }));
        assert!(!value.to_string().contains("sesame"));
    }

    #[test]
    fn headers_of_the_protocol_are_reserved() {
        for name in [
            "Content-Length",
            "ACCEPT",
            "Mcp-Session-Id",
            "Mcp-Param-City",
            "Last-Event-ID",
        ] {
            let rejected = BaseHeaders::new().add(name, "1");
            assert!(
                matches!(rejected, Err(InvalidRequestHeader::Reserved { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn headers_of_a_request_take_precedence() {
        let mut headers = BaseHeaders::new();
        headers.add("x-a", "1").unwrap();
        headers.add("x-a", "2").unwrap();
        headers.add("User-Agent", "mine").unwrap();
        let own = [(ACCEPT, HeaderValue::from_static("a/b"))];

        let all = headers.with(&own, 0);

        assert_eq!(all.get_all("x-a").iter().count(), 2);
        assert_eq!(all[USER_AGENT], "mine");
        assert_eq!(all.get_all(USER_AGENT).iter().count(), 1);
        assert_eq!(all[ACCEPT], "a/b");
    }

    #[test]
    fn prepared_headers_equal_individual_headers() {
        let mut headers = BaseHeaders::new();
        headers.add("x-a", "1").unwrap();
        headers.add("x-a", "2").unwrap();
        let value = HeaderValue::from_static;
        let prepared = headers.prepared(
            [(ACCEPT, value("a/b")), (CONTENT_TYPE, value("c/d"))],
            &[RANGE, FROM],
        );

        let all = prepared.with(&[(CONTENT_TYPE, value("e/f")), (FROM, value("me"))], 17);

        assert_eq!(all.get_all("x-a").iter().count(), 2);
        assert_eq!(all[ACCEPT], "a/b");
        assert_eq!(all[CONTENT_TYPE], "e/f");
        assert_eq!(all[CONTENT_LENGTH], "17");
        assert_eq!(all[FROM], "me");
        assert!(!all.contains_key(RANGE));
        assert!(!headers.with(&[], 17).contains_key(CONTENT_LENGTH));
    }
}
