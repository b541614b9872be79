//! The headers of a request, as the core compares them with its body.

use ::http::{HeaderMap, HeaderName, HeaderValue};
use turnbuckle_protocol::{Revision, RpcError};

use super::endpoint::Head;
use crate::lifecycle::stateless::{Mirror, mismatch};

pub(super) const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl Mirror for Head {
    fn header(&self, name: &str) -> Result<Option<&str>, RpcError> {
        // The names that every request has are not parsed each time.
        let mut values = match name {
            "mcp-protocol-version" => return self.version.mirrored(),
            "mcp-method" => self.headers.get_all(MCP_METHOD).iter(),
            "mcp-name" => self.headers.get_all(MCP_NAME).iter(),
            name => self.headers.get_all(name).iter(),
        };
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => visible(name, value).map(Some),
            (Some(_), Some(_)) => Err(twice(name)),
        }
    }
}

/// What the version header says, looked up once: everyone asks for it.
pub(super) enum Version {
    Absent,
    Known(Revision),
    Other(HeaderValue),
    MoreThanOnce,
}

impl Version {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(MCP_PROTOCOL_VERSION).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => {
                let revision = value.to_str().ok().and_then(|value| value.parse().ok());
                revision.map_or_else(|| Self::Other(value.clone()), Self::Known)
            }
            (Some(_), Some(_)) => Self::MoreThanOnce,
        }
    }

    /// The version; one that is not text, or two of them, say nothing that anyone supports.
    pub(super) fn named(&self) -> Option<&str> {
        match self {
            Self::Absent => None,
            Self::Known(revision) => Some(revision.as_str()),
            Self::Other(value) => Some(value.to_str().unwrap_or("?")),
            Self::MoreThanOnce => Some("?"),
        }
    }

    /// Refuses two version headers: whoever reads the other one would judge the request differently.
    pub(super) fn check_one(&self) -> Result<(), RpcError> {
        match self {
            Self::Absent | Self::Known(_) | Self::Other(_) => Ok(()),
            Self::MoreThanOnce => Err(RpcError::invalid_request(
                "`MCP-Protocol-Version` is there more than once",
            )),
        }
    }

    fn mirrored(&self) -> Result<Option<&str>, RpcError> {
        match self {
            Self::Absent => Ok(None),
            Self::Known(revision) => Ok(Some(revision.as_str())),
            Self::Other(value) => visible(MCP_PROTOCOL_VERSION.as_str(), value).map(Some),
            Self::MoreThanOnce => Err(twice(MCP_PROTOCOL_VERSION.as_str())),
        }
    }
}

fn visible<'a>(name: &str, value: &'a HeaderValue) -> Result<&'a str, RpcError> {
    match value.to_str() {
        Ok(value) => Ok(value.trim_ascii()),
        Err(_) => Err(mismatch(format!("`{name}` must be visible ASCII"))),
    }
}

fn twice(name: &str) -> RpcError {
    mismatch(format!("`{name}` is there more than once"))
}
