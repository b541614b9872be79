//! URL elicitation: the user opens a URL, and the server reports when that is done.
//!
//! A server of 2025-11-25 identifies such an elicitation, and can reject a call until the user has opened a URL (error
//! -32042). Modern servers and clients have neither.

use std::{collections::HashSet, sync::Mutex};

use tokio::sync::Notify;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{RawObject, code},
};
use turnbuckle_server::middleware::SessionKey;

use crate::lock;

/// Maximum number of URL elicitations in one error.
const MAX_REQUIRED: usize = 16;

/// Returns whether the parameters of an elicitation contain a URL to open.
pub(crate) fn is_url(params: &str) -> bool {
    let object = RawObject::parse(params).ok();
    let mode = object
        .as_ref()
        .and_then(|object| object.string("mode").ok()?);
    mode.is_some_and(|mode| mode == "url")
}

/// Returns the URL of an elicitation.
pub(crate) fn url_of(params: &str) -> Option<String> {
    let object = RawObject::parse(params).ok()?;
    object.string("url").ok()?.map(String::from)
}

/// Returns the id of a URL elicitation.
pub(crate) fn id_of(params: &str) -> Option<String> {
    let object = RawObject::parse(params).ok()?;
    object.string("elicitationId").ok()?.map(String::from)
}

/// Returns a new id of a URL elicitation.
pub(crate) fn new_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness the ids are equal, and a completion may be reported twice.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the parameters of the URL elicitations that an error requires, or `None` if it is another error.
pub(crate) fn required_elicitations(error: &RpcError) -> Option<Vec<String>> {
    if error.code != code::URL_ELICITATION_REQUIRED {
        return None;
    }
    let list = error.data.as_ref()?.get("elicitations")?.as_array()?;
    let elicitations: Vec<_> = list.iter().map(ToString::to_string).collect();
    let is_valid = (1..=MAX_REQUIRED).contains(&elicitations.len())
        && elicitations
            .iter()
            .all(|params| is_url(params) && url_of(params).is_some());
    is_valid.then_some(elicitations)
}

/// Maximum number of elicitations that are kept for a connection; completions of older ones are dropped.
const MAX_SENT: usize = 1_024;
/// Maximum length of the id of an elicitation that is kept.
const MAX_ID_BYTES: usize = 1_024;

/// The URL elicitations that a server has sent on a connection, and the sessions that got them. Only these are completed by
/// the server, and only these sessions are notified.
#[derive(Default)]
pub(crate) struct SentElicitations(Mutex<Vec<(Box<str>, SessionKey)>>);

impl SentElicitations {
    /// A session gets an elicitation.
    pub(crate) fn sent(&self, id: &str, session: Option<SessionKey>) {
        let Some(session) = session.filter(|_| id.len() <= MAX_ID_BYTES) else {
            return;
        };
        let mut sent = lock(&self.0);
        if sent.len() == MAX_SENT {
            sent.remove(0);
        }
        sent.push((id.into(), session));
    }

    /// Removes an elicitation, and returns the sessions that got it.
    pub(crate) fn complete(&self, id: &str) -> impl Iterator<Item = SessionKey> + use<> {
        let mut sent = lock(&self.0);
        let completed: Vec<_> = sent.extract_if(.., |(sent, _)| **sent == *id).collect();
        completed.into_iter().map(|(_, session)| session)
    }
}

/// The URL elicitations that a call waits for.
#[derive(Default)]
pub(crate) struct CompletedElicitations {
    open: Mutex<HashSet<String>>,
    changed: Notify,
}

impl CompletedElicitations {
    /// Adds elicitations. A server can report their completion before the user has responded.
    pub(crate) fn expect(&self, ids: impl IntoIterator<Item = String>) {
        lock(&self.open).extend(ids);
    }

    /// The server has reported a completion.
    pub(crate) fn complete(&self, id: &str) {
        if lock(&self.open).remove(id) {
            self.changed.notify_one();
        }
    }

    /// Waits until all elicitations are completed.
    pub(crate) async fn wait(&self) {
        while !lock(&self.open).is_empty() {
            self.changed.notified().await;
        }
    }

    /// Forgets all elicitations.
    pub(crate) fn clear(&self) {
        lock(&self.open).clear();
    }
}
