//! Ends a task before its time.

use std::sync::Arc;

use turnbuckle_protocol::types::EmptyResult;
use turnbuckle_protocol::types::tasks::CancelTaskParams;
use turnbuckle_protocol::{json, method};

use crate::call::Options;
use crate::client::{Beside, Client, complete};
use crate::error::CallError;

const CANCEL: &str = method::TASKS_CANCEL.name;

/// Asks the server to end a task.
pub(super) async fn cancel(client: &Client, id: &str, options: &Options) -> Result<(), CallError> {
    let params = CancelTaskParams::new(id);
    let beside = Beside::named(id);
    let reply = client.ask_once(&method::TASKS_CANCEL, &params, &beside, options);
    let reply = reply.await?;
    complete(CANCEL, &reply)?;
    // An acknowledgement, or the task as it is now: whoever wants to know looks.
    match json::from_str::<EmptyResult>(reply.result.as_str()) {
        Ok(_) => Ok(()),
        Err(error) => Err(CallError::InvalidAnswer {
            method: CANCEL,
            reason: error.to_string(),
        }),
    }
}

/// Ends a task that nobody waits for any more, unless it is [released](Self::release).
///
/// For calls that became tasks without being asked: dropping them cancels them, as it does with any other.
pub(super) struct Leash {
    held: Option<(Client, String, Options)>,
}

impl Leash {
    pub(super) fn new(client: &Client, id: &str, options: &Options) -> Self {
        Self {
            held: Some((client.clone(), id.to_owned(), options.clone())),
        }
    }

    /// Leaves the task alone from now on.
    pub(super) fn release(mut self) {
        self.held = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let Some((client, id, options)) = self.held.take() else {
            return;
        };
        let hub = Arc::clone(&client.inner.hub);
        hub.task_cancellations.spawn(async move {
            if let Err(error) = cancel(&client, &id, &options).await {
                tracing::debug!(%error, "a task that nobody waits for was not cancelled");
            }
        });
    }
}
