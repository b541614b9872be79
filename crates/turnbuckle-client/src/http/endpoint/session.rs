//! What is remembered between the requests of a session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::http::{HeaderMap, HeaderValue};
use tokio::task::AbortHandle;

use super::MCP_SESSION_ID;
use crate::{
    error::TransportError,
    http::{headers::Headers, wire::HttpError},
    lifecycle::Rules,
    message::{self, HeaderList},
};

/// The session, if the server holds one.
#[derive(Debug, Default)]
pub(super) struct Session(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    id: Option<HeaderValue>,
    /// What was agreed, and the headers of whatever is posted since then.
    agreed: Option<(Arc<Rules>, Arc<Headers>)>,
    /// The handshake is done. Until then, or after it failed, there is nothing that a request could belong to.
    begun: bool,
    /// Reads the server's own stream.
    stream: Option<AbortHandle>,
}

impl Session {
    /// Returns the id that every request has to repeat.
    pub(super) fn id(&self) -> Option<HeaderValue> {
        self.lock().id.clone()
    }

    /// Returns the id that goes along with a request, and its headers, if its rules are what was agreed.
    pub(super) fn going_along(
        &self,
        rules: &Arc<Rules>,
        begins: bool,
    ) -> Result<(Option<HeaderValue>, Option<Arc<Headers>>), TransportError> {
        let state = self.lock();
        let id = match rules.session {
            // Somebody is about to begin a new one, or failed to: who asks now has to begin it, or wait for it.
            true if !begins && !state.begun => return Err(TransportError::SessionEnded),
            true => state.id.clone(),
            false => None,
        };
        let agreed = state.agreed.as_ref();
        let agreed = agreed.filter(|(agreed, _)| Arc::ptr_eq(agreed, rules));
        Ok((id, agreed.map(|(_, headers)| Arc::clone(headers))))
    }

    /// Takes the id from the answer to `initialize`; there need not be one.
    pub(super) fn begin(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        let mut ids = headers.get_all(MCP_SESSION_ID).iter();
        let Some(id) = ids.next() else {
            return Ok(());
        };
        let visible = id.as_bytes().iter().all(u8::is_ascii_graphic);
        if !visible || id.is_empty() || ids.next().is_some() {
            return Err(HttpError::SessionId);
        }
        let mut id = id.clone();
        // Who knows it can speak in our name.
        id.set_sensitive(true);
        self.lock().id = Some(id);
        Ok(())
    }

    /// Prepares the headers that requests have in common from now on: which revision is spoken, and the id.
    pub(super) fn prepare(&self, rules: &Arc<Rules>, posting: &Headers) {
        let mut state = self.lock();
        let id = state.id.clone().map(|id| (MCP_SESSION_ID, id));
        let common = message::version(rules).into_iter().chain(id);
        let headers = posting.prepared(common, message::own_headers(rules));
        state.agreed = Some((Arc::clone(rules), Arc::new(headers)));
    }

    /// Notes that the handshake is done, and who reads the stream of the session.
    pub(super) fn agreed(&self, stream: AbortHandle) {
        let mut state = self.lock();
        state.begun = true;
        if let Some(previous) = state.stream.replace(stream) {
            previous.abort();
        }
    }

    /// Forgets it all: the server has, or a new session is about to begin.
    pub(super) fn forget(&self) {
        let state = std::mem::take(&mut *self.lock());
        if let Some(stream) = state.stream {
            stream.abort();
        }
    }

    /// Ends it on our side; returns the headers to end it with on the other side, if there is something to end.
    pub(super) fn end(&self) -> Option<HeaderList> {
        let state = std::mem::take(&mut *self.lock());
        if let Some(stream) = state.stream {
            stream.abort();
        }
        let mut headers = vec![(MCP_SESSION_ID, state.id?)];
        let rules = state.agreed.map(|(rules, _)| rules);
        headers.extend(rules.and_then(|rules| message::version(&rules)));
        Some(headers)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
