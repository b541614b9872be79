//! The MCP headers of a request, which the protocol layer compares with the body.

use ::http::{HeaderMap, HeaderName, HeaderValue};
use turnbuckle_protocol::{Revision, RpcError};

use crate::{
    http::endpoint::RequestHead,
    lifecycle::stateless::{RequestHeaders, header_mismatch},
};

pub(super) const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl RequestHeaders for RequestHead {
    fn header(&self, name: &str) -> Result<Option<&str>, RpcError> {
        // The names that every request has are constants, so they are not parsed each time.
        let mut values = match name {
            "mcp-protocol-version" => return self.version.checked(),
            "mcp-method" => self.headers.get_all(MCP_METHOD).iter(),
            "mcp-name" => self.headers.get_all(MCP_NAME).iter(),
            name => return self.headers.header(name),
        };
        single_value(name, values.next(), values.next())
    }
}

impl RequestHeaders for HeaderMap {
    fn header(&self, name: &str) -> Result<Option<&str>, RpcError> {
        let mut values = self.get_all(name).iter();
        single_value(name, values.next(), values.next())
    }
}

/// Returns the value of a header with one value.
fn single_value<'a>(
    name: &str,
    first: Option<&'a HeaderValue>,
    second: Option<&'a HeaderValue>,
) -> Result<Option<&'a str>, RpcError> {
    match (first, second) {
        (None, _) => Ok(None),
        (Some(value), None) => visible_ascii(name, value).map(Some),
        (Some(_), Some(_)) => Err(duplicate_header(name)),
    }
}

/// The value of `MCP-Protocol-Version`, parsed once per request.
pub(super) enum VersionHeader {
    Absent,
    Revision(Revision),
    Other(HeaderValue),
    Duplicate,
}

impl VersionHeader {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(MCP_PROTOCOL_VERSION).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => {
                let revision = value.to_str().ok().and_then(|value| value.parse().ok());
                revision.map_or_else(|| Self::Other(value.clone()), Self::Revision)
            }
            (Some(_), Some(_)) => Self::Duplicate,
        }
    }

    /// Returns the version as text. A value that is not text, or a duplicate header, becomes `?`, which no revision matches.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Absent => None,
            Self::Revision(revision) => Some(revision.as_str()),
            Self::Other(value) => Some(value.to_str().unwrap_or("?")),
            Self::Duplicate => Some("?"),
        }
    }

    /// Rejects duplicate version headers, since another reader of the request could use the other value.
    pub(super) fn reject_duplicate(&self) -> Result<(), RpcError> {
        match self {
            Self::Absent | Self::Revision(_) | Self::Other(_) => Ok(()),
            Self::Duplicate => Err(RpcError::invalid_request(
                "duplicate header `MCP-Protocol-Version`",
            )),
        }
    }

    fn checked(&self) -> Result<Option<&str>, RpcError> {
        match self {
            Self::Absent => Ok(None),
            Self::Revision(revision) => Ok(Some(revision.as_str())),
            Self::Other(value) => visible_ascii(MCP_PROTOCOL_VERSION.as_str(), value).map(Some),
            Self::Duplicate => Err(duplicate_header(MCP_PROTOCOL_VERSION.as_str())),
        }
    }
}

fn visible_ascii<'a>(name: &str, value: &'a HeaderValue) -> Result<&'a str, RpcError> {
    match value.to_str() {
        Ok(value) => Ok(value.trim_ascii()),
        Err(_) => Err(header_mismatch(format!("`{name}` must be visible ASCII"))),
    }
}

fn duplicate_header(name: &str) -> RpcError {
    header_mismatch(format!("duplicate header `{name}`"))
}
