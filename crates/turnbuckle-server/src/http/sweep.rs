//! Letting go of sessions and streams that have outlived their time.

use std::{sync::Arc, sync::Mutex, time::Duration};

use tokio::time::{Instant, sleep};

use super::{endpoint::Endpoint, presence::lock};

/// How often to look.
const PERIOD: Duration = Duration::from_secs(30);

/// Remembers when it was last swept.
#[derive(Default)]
pub(super) struct Sweeper {
    last: Mutex<Option<Instant>>,
}

impl Sweeper {
    /// Says whether it is time, and if so, that it will be done.
    fn is_due(&self) -> bool {
        let mut last = lock(&self.last);
        let now = Instant::now();
        let due = last.is_none_or(|last| now - last >= PERIOD);
        if due {
            *last = Some(now);
        }
        due
    }
}

impl Endpoint {
    /// Sweeps for as long as it is polled.
    pub(super) async fn sweep_regularly(self: Arc<Self>) {
        loop {
            sleep(PERIOD).await;
            self.sweep().await;
        }
    }

    /// Sweeps now and then; for services that nobody sweeps regularly, whenever they grow.
    pub(super) async fn sweep_if_due(&self) {
        if self.sweeper.is_due() {
            self.sweep().await;
        }
    }

    async fn sweep(&self) {
        let store = self.server.store_ref();
        match store.sessions.sweep().await {
            Ok(expired) => {
                for session in expired {
                    self.session_over(session).await;
                }
            }
            Err(error) => tracing::warn!(%error, "cannot sweep sessions"),
        }
        if let Err(error) = store.events.sweep().await {
            tracing::warn!(%error, "cannot sweep events");
        }
        if let Err(error) = store.journals.sweep().await {
            tracing::warn!(%error, "cannot sweep journals");
        }
        if let Err(error) = store.tasks.sweep().await {
            tracing::warn!(%error, "cannot sweep tasks");
        }
    }
}
