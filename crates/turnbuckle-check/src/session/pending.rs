//! A request that waits for its answer.

use serde_json::Value;

use super::posting::Posting;

/// A request that waits for its answer. Dropping it on HTTP closes its connection.
pub(crate) struct Pending {
    /// The id by which its answer is known; a message without one has none.
    pub(crate) id: Option<Value>,
    /// The entry of the request.
    pub(crate) sent: Option<usize>,
    pub(super) status: Option<u16>,
    pub(super) head: Option<usize>,
    pub(super) posting: Option<Posting>,
}

impl Pending {
    pub(super) fn on_line(id: Option<Value>, sent: usize) -> Self {
        Self {
            id,
            sent: Some(sent),
            status: None,
            head: None,
            posting: None,
        }
    }

    pub(super) fn posted(id: Option<Value>, posting: Posting) -> Self {
        Self {
            id,
            sent: Some(posting.sent),
            status: None,
            head: None,
            posting: Some(posting),
        }
    }

    pub(super) fn head(&mut self, status: u16, number: usize) {
        self.status = Some(status);
        self.head = Some(number);
    }

    /// Says whether the server took what was posted.
    pub(super) fn is_accepted(&self) -> bool {
        self.status
            .is_some_and(|status| (200..300).contains(&status))
    }

    /// Lets the rest of the response come: it may be of interest to those who look at the tape, and then the connection can
    /// be used again.
    pub(super) fn finish(&mut self) {
        if let Some(posting) = self.posting.take() {
            tokio::spawn(posting.finish());
        }
    }

    /// Says whether a message is the answer.
    ///
    /// What comes back on HTTP without an id answers the request that it comes back for: its `own` response.
    pub(super) fn is_answered_by(&self, message: &Value, own: bool) -> bool {
        if message.get("method").is_some() {
            return false;
        }
        match (message.get("id"), &self.id) {
            (Some(theirs), Some(ours)) if theirs == ours => true,
            (Some(Value::Null) | None, _) => own && message.get("error").is_some(),
            _ => false,
        }
    }
}
