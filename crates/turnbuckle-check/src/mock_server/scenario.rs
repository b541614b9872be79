//! Scenarios: special behavior of the mock server.

mod interrupted;
mod notifications_first;
pub(crate) mod requires_token;
mod server_requests;

use serde_json::json;
use turnbuckle_protocol::revision::Revision;

pub(crate) use self::{
    interrupted::RETRY_DELAY,
    notifications_first::UNKNOWN_NOTIFICATION,
    server_requests::{FORM, PING, ROOTS, SAMPLING, TOOLS, UNDECLARED, UNKNOWN, URL_ELICITATION},
};
use super::{
    script::ScriptedReply,
    server::{MockServer, NonRpcRequest, ReceivedRequest, capabilities},
    target::TransportKind,
};
use crate::engine::transcript::HttpHead;

/// A behavior of the mock server; a client runs once in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scenario {
    /// No special behavior.
    Default,
    /// Sends log and progress notifications before responses; on HTTP every response is a stream.
    NotificationsFirst,
    /// Lists are paginated.
    Pagination,
    /// Advertises tools only.
    ToolsOnly,
    /// Sends requests to the client before it responds.
    ServerRequests,
    /// Supports an unknown revision only.
    UnknownRevision,
    /// Responds in batches.
    Batches,
    /// Loses the session once.
    LostSession,
    /// Interrupts a stream once before the response.
    InterruptedStream,
    /// Supports HTTP+SSE only.
    HttpSseOnly,
    /// Requires an access token.
    RequiresToken,
    /// Supports the handshake only, and rejects other requests with the usual error code.
    LegacyOnly,
    /// Like `LegacyOnly`, with an unusual error code.
    LegacyOnlyUnusualCode,
}

impl Scenario {
    /// All scenarios, in the order in which they run.
    pub(crate) const ALL: [Self; 13] = [
        Self::Default,
        Self::NotificationsFirst,
        Self::Pagination,
        Self::ToolsOnly,
        Self::ServerRequests,
        Self::UnknownRevision,
        Self::Batches,
        Self::LostSession,
        Self::InterruptedStream,
        Self::HttpSseOnly,
        Self::RequiresToken,
        Self::LegacyOnly,
        Self::LegacyOnlyUnusualCode,
    ];

    /// Returns whether the scenario exists in a revision on a transport.
    pub(crate) fn applies_to(self, revision: Revision, transport_kind: TransportKind) -> bool {
        let streamable = transport_kind == TransportKind::Http && revision >= Revision::V2025_03_26;
        match self {
            Self::Default
            | Self::NotificationsFirst
            | Self::Pagination
            | Self::ToolsOnly
            | Self::ServerRequests
            | Self::UnknownRevision => true,
            Self::Batches => revision == Revision::V2025_03_26,
            Self::LostSession => streamable && !revision.is_stateless(),
            Self::InterruptedStream | Self::HttpSseOnly | Self::RequiresToken => streamable,
            Self::LegacyOnly | Self::LegacyOnlyUnusualCode => revision.is_stateless(),
        }
    }

    /// Returns the revision of the mock server for a client that is checked in a revision.
    pub(crate) fn server_revision(self, revision: Revision) -> Revision {
        match self {
            Self::HttpSseOnly => Revision::V2024_11_05,
            Self::LegacyOnly | Self::LegacyOnlyUnusualCode => Revision::LATEST_LEGACY,
            _ => revision,
        }
    }

    /// Returns the special reply to a request, if any.
    pub(crate) fn reply(
        self,
        mock: &MockServer,
        received: &ReceivedRequest<'_>,
    ) -> Option<ScriptedReply> {
        match self {
            Self::Default | Self::Pagination | Self::ToolsOnly | Self::HttpSseOnly => None,
            Self::NotificationsFirst => notifications_first::reply(mock, received),
            Self::ServerRequests => server_requests::reply(mock, received),
            Self::UnknownRevision => reply_with_unknown_revision(mock, received),
            Self::Batches => notifications_first::batch(mock, received),
            Self::LostSession => interrupted::lose_session(received),
            Self::InterruptedStream => interrupted::reply(mock, received),
            Self::RequiresToken => requires_token::reject(mock, received.head),
            Self::LegacyOnly => reject_modern(received, -32601),
            Self::LegacyOnlyUnusualCode => reject_modern(received, -32000),
        }
    }

    /// Returns the special reply to a message without a response, if any.
    pub(crate) fn accepted(self, mock: &MockServer, head: &HttpHead) -> Option<ScriptedReply> {
        match self {
            Self::RequiresToken => requires_token::reject(mock, Some(head)),
            _ => None,
        }
    }

    /// Returns the special reply to another HTTP request, if any.
    pub(crate) fn page(self, mock: &MockServer, page: &NonRpcRequest<'_>) -> Option<ScriptedReply> {
        match self {
            Self::InterruptedStream => interrupted::page(mock, page),
            Self::RequiresToken => requires_token::page(mock, page),
            _ => None,
        }
    }
}

/// A revision before the first.
const REVISION_BEFORE_ALL: &str = "1999-12-31";

/// A revision after the last.
const REVISION_AFTER_ALL: &str = "2999-12-31";

/// Responds with an unknown revision.
fn reply_with_unknown_revision(
    mock: &MockServer,
    received: &ReceivedRequest<'_>,
) -> Option<ScriptedReply> {
    let request = received.message;
    match (received.method, mock.has_handshake()) {
        ("initialize", true) => Some(ScriptedReply::result(
            request,
            &json!({
                "protocolVersion": REVISION_BEFORE_ALL,
                "capabilities": capabilities(mock),
                "serverInfo": { "name": "turnbuckle-check", "version": "0" },
            }),
        )),
        (_, true) | ("initialize", false) => None,
        (_, false) => {
            let requested = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            let message = json!({ "jsonrpc": "2.0", "id": request["id"], "error": {
                "code": -32022,
                "message": "Unsupported protocol version",
                "data": { "supported": [REVISION_AFTER_ALL], "requested": requested },
            } });
            Some(ScriptedReply::message(message).with_status(400))
        }
    }
}

/// Rejects modern requests with an error code, like a legacy server.
fn reject_modern(received: &ReceivedRequest<'_>, code: i64) -> Option<ScriptedReply> {
    let is_legacy_method = ["initialize", "ping"].contains(&received.method);
    let modern = received.message["params"]["_meta"]
        .get("io.modelcontextprotocol/protocolVersion")
        .is_some();
    if is_legacy_method || !modern {
        return None;
    }
    let status = match code {
        -32601 => 200,
        _ => 400,
    };
    Some(ScriptedReply::error(received.message, code, "Unknown request").with_status(status))
}
