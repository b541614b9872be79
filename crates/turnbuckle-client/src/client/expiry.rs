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
    begun: &'c Begun,
) -> impl Future<Output = Duration> + 'c {
    let call = Waiting {
        options,
        hub,
        watching,
        begun,
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
    begun: &'c Begun,
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
        let held = held(self.options).saturating_sub(self.begun.held);
        let left = self
            .options
            .patience
            .total
            .saturating_sub(self.options.spent);
        self.begun.at.checked_add(left.saturating_add(held))
    }

    /// When the server was last seen at work.
    ///
    /// One that waits for us is not silent: its question may be before a person who takes time. Nor is one that was not asked
    /// yet, because somebody logs in first.
    fn last_seen(&self) -> Instant {
        let progress = self.watching.map_or(self.begun.at, Watching::last_seen);
        let awaited = self.hub.last_awaited_by_server();
        let awaited = awaited.max(self.held().and_then(Held::last));
        awaited.map_or(progress, |awaited| awaited.max(progress))
    }

    fn held(&self) -> Option<&Held> {
        self.options.held.as_deref()
    }
}

/// When a request was first sent.
pub(crate) struct Begun {
    at: Instant,
    held: Duration,
}

impl Begun {
    pub(crate) fn now(options: &Options) -> Self {
        let (at, held) = (Instant::now(), held(options));
        Self { at, held }
    }

    /// Returns what is left of the total for further requests of the same call.
    pub(crate) fn left(&self, options: &Options) -> Options {
        let took = self.at.elapsed();
        let mut left = options.clone();
        left.spent += took.saturating_sub(held(options).saturating_sub(self.held));
        left
    }
}

/// Returns how long somebody got credentials for a call.
fn held(options: &Options) -> Duration {
    let held = options.held.as_deref();
    held.map(Held::total).unwrap_or_default()
}
