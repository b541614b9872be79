//! Calls that a server of 2025-11-25 refuses until its user has visited some URLs.
//!
//! The user is asked once per visit. The server may say when a visit is over; if it does not, the call is made again
//! after a while, and its answer tells.

use std::collections::HashSet;

use tokio::sync::broadcast;
use turnbuckle_protocol::json;
use turnbuckle_protocol::jsonrpc::code;
use turnbuckle_protocol::types::{ElicitUrlParams, UrlElicitationRequiredData};

use crate::call::Options;
use crate::change::Change;
use crate::client::Client;
use crate::error::CallError;
use crate::hub::Signal;

const ELICIT: &str = turnbuckle_protocol::method::ELICITATION_CREATE.name;

/// The visits that the user agreed to during one call.
#[derive(Debug, Default)]
pub(super) struct Visited(HashSet<String>);

impl Client {
    /// Has the URLs visited that an error speaks of; any other error is returned.
    pub(super) async fn visit_first(
        &self,
        error: CallError,
        visited: &mut Visited,
        options: &Options,
    ) -> Result<(), CallError> {
        let (method, visits) = match self.wanted(&error) {
            Some(wanted) => wanted,
            None => return Err(error),
        };
        // Listens before the user is asked, so that nothing is missed.
        let signals = self.inner.hub.signals.subscribe();
        let mut open = HashSet::new();
        for visit in visits {
            let id = visit.elicitation_id.as_ref().unwrap_or(&visit.url).clone();
            if !visited.0.contains(&id) {
                self.agree_to(method, visit).await?;
                visited.0.insert(id.clone());
            }
            open.insert(id);
        }
        let silence = options.patience.silence;
        // Without a word from the server, the next answer to the call tells.
        let _ = tokio::time::timeout(silence, all_over(open, signals)).await;
        Ok(())
    }

    /// Reads which visits an error asks for, if it does and they can be made.
    fn wanted(&self, error: &CallError) -> Option<(&'static str, Vec<ElicitUrlParams>)> {
        let CallError::Refused { method, source, .. } = error else {
            return None;
        };
        let asks = source.code == code::URL_ELICITATION_REQUIRED && self.inner.rules().visits_first;
        if !asks || !self.inner.settings.capabilities.can_elicit_url() {
            return None;
        }
        let data = source.data.clone()?;
        let data: UrlElicitationRequiredData = json::from_value(&data).ok()?;
        let most = self.inner.settings.limits.asked;
        let fits = (1..=most).contains(&data.elicitations.len());
        fits.then_some((method, data.elicitations))
    }

    async fn agree_to(
        &self,
        method: &'static str,
        visit: ElicitUrlParams,
    ) -> Result<(), CallError> {
        let unanswered = |source| CallError::Unanswered {
            method,
            asked: ELICIT.to_owned(),
            source: Box::new(source),
        };
        let params = serde_json::to_string(&visit).expect("our own types have string keys");
        let revision = self.inner.rules().revision;
        let callbacks = &self.inner.settings.callbacks;
        let answer = callbacks.answer(ELICIT, &params, revision).await;
        match answer.map_err(unanswered)?["action"].as_str() {
            Some("accept") => Ok(()),
            _ => Err(CallError::VisitDeclined { method }),
        }
    }
}

/// Waits until the server has said of each visit that it is over; what it says of others is passed over.
async fn all_over(mut open: HashSet<String>, mut signals: broadcast::Receiver<Signal>) {
    while !open.is_empty() {
        match signals.recv().await {
            Ok(Signal::Change(Change::Visit { elicitation_id })) => {
                open.remove(&elicitation_id);
            }
            Ok(Signal::Change(_)) => {}
            // It may have been said and missed, or will never be said: the call tells.
            Ok(Signal::Gap | Signal::End(_)) | Err(_) => return,
        }
    }
}
