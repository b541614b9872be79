//! How long a call waits for its answer.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::call::Options;
use crate::held::Held;
use crate::hub::Hub;
use crate::progress::Watching;

/// Waits until patience is at its end, and says which part of it.
pub(super) fn expired<'c>(
    options: &'c Options,
    hub: &'c Hub,
    watching: Option<&'c Watching>,
) -> impl Future<Output = Duration> + 'c {
    let call = Waiting {
        options,
        hub,
        watching,
        begun: Instant::now(),
        held_before: options.held.as_deref().map(Held::total),
    };
    async move {
        while let Some((end, limit)) = call.end() {
            sleep_until(end).await;
            // Whatever happened in the meantime may have moved it.
            if call.end().is_some_and(|(now, _)| now <= end) {
                return limit;
            }
        }
        std::future::pending().await
    }
}

/// A call that waits.
struct Waiting<'c> {
    options: &'c Options,
    hub: &'c Hub,
    watching: Option<&'c Watching>,
    begun: Instant,
    held_before: Option<Duration>,
}

impl Waiting<'_> {
    /// Returns when patience ends, as things are, and which part of it.
    fn end(&self) -> Option<(Instant, Duration)> {
        let patience = self.options.patience;
        let silent = self.last_seen().checked_add(patience.silence);
        match (silent, self.latest()) {
            (Some(silent), Some(latest)) if latest <= silent => Some((latest, patience.total)),
            (Some(silent), _) => Some((silent, patience.silence)),
            (None, latest) => latest.map(|latest| (latest, patience.total)),
        }
    }

    /// When it ends, whatever is seen. What somebody took to get credentials does not count.
    fn latest(&self) -> Option<Instant> {
        let held = self.held().map(Held::total).zip(self.held_before);
        let held = held.map(|(total, before)| total.saturating_sub(before));
        let left = self
            .options
            .patience
            .total
            .saturating_sub(self.options.spent);
        self.begun
            .checked_add(left.saturating_add(held.unwrap_or_default()))
    }

    /// When the server was last seen at work.
    ///
    /// One that waits for us is not silent: its question may be before a person who takes time. Nor is one that was not asked
    /// yet, because somebody logs in first.
    fn last_seen(&self) -> Instant {
        let progress = self.watching.map_or(self.begun, Watching::last_seen);
        let awaited = self.hub.last_awaited_by_server();
        let awaited = awaited.max(self.held().and_then(Held::last));
        awaited.map_or(progress, |awaited| awaited.max(progress))
    }

    fn held(&self) -> Option<&Held> {
        self.options.held.as_deref()
    }
}
