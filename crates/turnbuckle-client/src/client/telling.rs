//! Tells a server when the roots change, in the revisions that want it.

use std::sync::{Arc, Weak};

use tokio::task::AbortHandle;
use turnbuckle_protocol::jsonrpc::write_notification;
use turnbuckle_protocol::method;

use super::Inner;
use crate::callbacks::Roots;
use crate::hub::Hub;

/// A task that tells of changes, until this is dropped.
#[derive(Debug)]
pub(super) struct Telling(AbortHandle);

impl Telling {
    /// Tells of what changes from now on.
    pub(super) fn start(roots: &Roots, hub: &Arc<Hub>) -> Self {
        let mut changes = roots.changes();
        let hub: Weak<Hub> = Arc::downgrade(hub);
        let task = tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(hub) = hub.upgrade() else {
                    return;
                };
                let Some(client) = hub.client() else {
                    return;
                };
                hub.while_held(async move { client.tell_roots_changed().await })
                    .await;
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Inner {
    async fn tell_roots_changed(&self) {
        if !self.rules().roots_change {
            return;
        }
        let mut message = Vec::new();
        let name = method::ROOTS_LIST_CHANGED.name;
        write_notification(&mut message, name, &()).expect("a constant is always JSON");
        if let Err(error) = self.send(message).await {
            tracing::debug!(%error, "the server was not told that the roots changed");
        }
    }
}
