//! Telling a session of changes it wants to know of.

use std::sync::{Arc, Weak};

use tokio::task::AbortHandle;
use turnbuckle_store::{Change, Lagged, Subscription};

use super::connection::Connection;
use crate::{lifecycle::session, subscriptions::Announcement};

/// Tells the session on a connection of everything that changes from now on.
pub(super) fn announce(connection: &Arc<Connection>) -> AbortHandle {
    let changes = connection.server.store_ref().bus.subscribe();
    tokio::spawn(pass_on(Arc::downgrade(connection), changes)).abort_handle()
}

async fn pass_on(connection: Weak<Connection>, mut changes: Subscription) {
    loop {
        let change = changes.next().await;
        let Some(connection) = connection.upgrade() else {
            return;
        };
        let Some(record) = connection.session() else {
            continue;
        };
        let changes: Vec<Change> = match change {
            Ok(change) => vec![change],
            Err(Lagged { .. }) => session::all_changes(&record),
        };
        if session::is_quiet(&record, &connection.live) {
            continue;
        }
        let id = connection.connected.id();
        for announcement in changes.into_iter().map(Announcement::new) {
            let (server, live) = (&connection.server, &connection.live);
            if let Some(message) = session::notice(server, &record, id, live, &announcement) {
                // A peer that does not read makes us lag, and learns later that it missed something.
                connection.sink.room().await;
                connection.sink.push(&message);
            }
        }
    }
}
