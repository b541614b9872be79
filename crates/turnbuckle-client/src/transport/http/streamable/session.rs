//! The state of a session between requests.

use std::sync::{Arc, Mutex};

use ::http::{HeaderMap, HeaderValue, StatusCode};
use bytes::Bytes;
use tokio::task::AbortHandle;

use crate::{
    error::TransportError,
    inbound::message::{self, InboundMessage},
    lifecycle::RevisionRules,
    sync::lock,
    transport::{
        encode::{self, HeaderList},
        http::{headers::BaseHeaders, streamable::MCP_SESSION_ID},
        http_client::{ErrorResponse, HttpError},
    },
};

/// The session, if the server has one.
#[derive(Debug, Default)]
pub(super) struct HttpSession(Mutex<HttpSessionState>);

#[derive(Debug, Default)]
struct HttpSessionState {
    id: Option<HeaderValue>,
    /// The negotiated rules, and the headers of every POST since then.
    negotiated: Option<(Arc<RevisionRules>, Arc<BaseHeaders>)>,
    /// Whether the handshake is done. Before that, or after it failed, requests lack a session.
    initialized: bool,
    /// The task that reads the GET stream.
    get_stream: Option<AbortHandle>,
}

impl HttpSession {
    /// Returns the session id, which every request must repeat.
    pub(super) fn id(&self) -> Option<HeaderValue> {
        lock(&self.0).id.clone()
    }

    /// Returns the session id of a request, and the headers that it has in common with others: cached ones, if its
    /// rules are the negotiated ones.
    pub(super) fn post_headers(
        &self,
        rules: &Arc<RevisionRules>,
        base: &BaseHeaders,
        is_initialize: bool,
    ) -> Result<(Option<HeaderValue>, Arc<BaseHeaders>), TransportError> {
        let state = lock(&self.0);
        // Another caller is initializing a new session, or failed to: this caller has to initialize one, or wait.
        if rules.session && !is_initialize && !state.initialized {
            return Err(TransportError::SessionEnded);
        }
        let id = state.id.clone().filter(|_| rules.session);
        let headers = match &state.negotiated {
            Some((negotiated, headers)) if Arc::ptr_eq(negotiated, rules) => Arc::clone(headers),
            _ => Arc::new(common_headers(rules, id.clone(), base)),
        };
        Ok((id, headers))
    }

    /// Stores the session id of the response to `initialize`, if there is one.
    pub(super) fn set_id(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        let mut ids = headers.get_all(MCP_SESSION_ID).iter();
        let Some(id) = ids.next() else {
            return Ok(());
        };
        let visible = id.as_bytes().iter().all(u8::is_ascii_graphic);
        if !visible || id.is_empty() || ids.next().is_some() {
            return Err(HttpError::InvalidSessionId);
        }
        let mut id = id.clone();
        // The id authenticates the session, so it is a secret.
        id.set_sensitive(true);
        lock(&self.0).id = Some(id);
        Ok(())
    }

    /// Caches the headers that requests have in common: the protocol version and the session id.
    pub(super) fn cache_headers(&self, rules: &Arc<RevisionRules>, base: &BaseHeaders) {
        let mut state = lock(&self.0);
        let headers = common_headers(rules, state.id.clone(), base);
        state.negotiated = Some((Arc::clone(rules), Arc::new(headers)));
    }

    /// Marks the handshake as done, and stores the task that reads the GET stream.
    pub(super) fn set_get_stream(&self, get_stream: AbortHandle) {
        let mut state = lock(&self.0);
        state.initialized = true;
        if let Some(previous) = state.get_stream.replace(get_stream) {
            previous.abort();
        }
    }

    /// Resets the session: it has ended, or a new one is about to start.
    pub(super) fn reset(&self) {
        let state = std::mem::take(&mut *lock(&self.0));
        if let Some(get_stream) = state.get_stream {
            get_stream.abort();
        }
    }

    /// Ends the session locally; returns the headers to end it on the server, if there is one.
    pub(super) fn end(&self) -> Option<HeaderList> {
        let state = std::mem::take(&mut *lock(&self.0));
        if let Some(get_stream) = state.get_stream {
            get_stream.abort();
        }
        let mut headers = vec![(MCP_SESSION_ID, state.id?)];
        let rules = state.negotiated.map(|(rules, _)| rules);
        headers.extend(rules.and_then(|rules| encode::version(&rules)));
        Some(headers)
    }
}

/// Returns the headers that POST requests have in common: those of `base`, the protocol version and the session id.
fn common_headers(
    rules: &RevisionRules,
    id: Option<HeaderValue>,
    base: &BaseHeaders,
) -> BaseHeaders {
    let id = id.map(|id| (MCP_SESSION_ID, id));
    let common = encode::version(rules).into_iter().chain(id);
    base.prepared(common, encode::lifecycle_headers(rules))
}

/// Returns whether an error response to a request of a session means that the server does not know that session.
///
/// The specification defines status 404. Servers written after the examples of the TypeScript SDK respond with status
/// 400 and error -32000, "No valid session ID provided", or "Server not initialized" after a restart.
pub(super) fn is_unknown_session(response: &ErrorResponse) -> bool {
    match response.status {
        StatusCode::NOT_FOUND => true,
        StatusCode::BAD_REQUEST => {
            let text = match &response.json {
                Some(json) => server_error_message(json),
                None => Some(response.excerpt.clone()),
            };
            let text = text.unwrap_or_default().to_ascii_lowercase();
            ["session id", "session not found", "not initialized"]
                .iter()
                .any(|reason| text.contains(reason))
        }
        _ => false,
    }
}

/// Returns the message of a JSON-RPC error with code -32000.
fn server_error_message(json: &Bytes) -> Option<String> {
    const SERVER_ERROR: i64 = -32000;
    let mut found = None;
    message::read(json, |received| {
        if let InboundMessage::ErrorWithoutId(error)
        | InboundMessage::Response {
            outcome: Err(error),
            ..
        } = received
            && error.code == SERVER_ERROR
        {
            found = Some(error.message);
        }
    });
    found
}
