//! The headers of a request, as the core compares them with its body.

use ::http::{HeaderMap, HeaderName};
use turnbuckle_protocol::RpcError;

use crate::lifecycle::stateless::{Mirror, mismatch};

const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl Mirror for HeaderMap {
    fn header(&self, name: &str) -> Result<Option<&str>, RpcError> {
        // The names that every request has are not parsed each time.
        let mut values = match name {
            "mcp-protocol-version" => self.get_all(MCP_PROTOCOL_VERSION).iter(),
            "mcp-method" => self.get_all(MCP_METHOD).iter(),
            "mcp-name" => self.get_all(MCP_NAME).iter(),
            name => self.get_all(name).iter(),
        };
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(mismatch(format!("`{name}` is there more than once")));
        }
        match value.to_str() {
            Ok(value) => Ok(Some(value.trim_matches([' ', '\t']))),
            Err(_) => Err(mismatch(format!("`{name}` must be visible ASCII"))),
        }
    }
}

/// What the version header says; one that is not text, or two of them, say nothing that anyone supports.
pub(super) fn version(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(MCP_PROTOCOL_VERSION).iter();
    let value = values.next()?;
    match (value.to_str(), values.next()) {
        (Ok(version), None) => Some(version),
        _ => Some("?"),
    }
}

/// Refuses two version headers: whoever reads the other one would judge the request differently.
pub(super) fn check_one_version(headers: &HeaderMap) -> Result<(), RpcError> {
    match headers.get_all(MCP_PROTOCOL_VERSION).iter().nth(1) {
        None => Ok(()),
        Some(_) => Err(RpcError::invalid_request(
            "`MCP-Protocol-Version` is there more than once",
        )),
    }
}
