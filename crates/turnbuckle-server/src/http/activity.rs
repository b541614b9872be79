//! Whether a connection waits for a request, and since when.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::time::Instant;

/// What the parts of one connection know together.
///
/// A request costs two stores here, and no look at the clock: HTTP/1.1 reads it anyway when it begins to wait for a head.
pub(super) struct Activity {
    pub(super) started: Instant,
    /// Milliseconds from `started` to when the connection began to wait for a request, or [`BUSY`].
    waiting_since: AtomicU64,
    /// Open streams of HTTP/2.
    pub(super) streams: AtomicUsize,
    /// Bytes of an answer wait until the client reads.
    write_waits: AtomicBool,
    lingers: AtomicBool,
}

/// A request is being read or answered.
const BUSY: u64 = u64::MAX;

impl Activity {
    /// A connection that was just accepted; `started` is the same for all that are compared.
    pub(super) fn new(started: Instant) -> Self {
        let activity = Self {
            started,
            waiting_since: AtomicU64::new(BUSY),
            streams: AtomicUsize::new(0),
            write_waits: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
        };
        activity.wait(Instant::now());
        activity
    }

    /// Notes that a request has come.
    pub(super) fn begin(&self) {
        self.waiting_since.store(BUSY, Ordering::Relaxed);
    }

    /// Notes that the connection waits for a request since then.
    pub(super) fn wait(&self, since: Instant) {
        let passed = self.milliseconds(since);
        self.waiting_since.store(passed, Ordering::Relaxed);
    }

    /// Notes that bytes cannot be sent because the client does not read.
    pub(super) fn begin_write_wait(&self) {
        self.write_waits.store(true, Ordering::Relaxed);
    }

    /// Notes that the client reads again. Until now the connection was not idle.
    pub(super) fn end_write_wait(&self, now: Instant) {
        let now = self.milliseconds(now);
        let idle_from_now = |since| (since != BUSY).then_some(now);
        let _ =
            self.waiting_since
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, idle_from_now);
        self.write_waits.store(false, Ordering::Relaxed);
    }

    fn milliseconds(&self, at: Instant) -> u64 {
        let passed = at.saturating_duration_since(self.started).as_millis();
        u64::try_from(passed).unwrap_or(BUSY - 1)
    }

    /// Returns since when the connection waits for a request, in milliseconds; `None` while it has one, and
    /// while its client does not read.
    pub(super) fn idle_since(&self) -> Option<u64> {
        let since = self.waiting_since.load(Ordering::Relaxed);
        let has_streams = self.streams.load(Ordering::Relaxed) > 0;
        let write_waits = self.write_waits.load(Ordering::Relaxed);
        (since != BUSY && !has_streams && !write_waits).then_some(since)
    }

    /// Lets the connection read on for a while before it is closed, and discard what comes.
    pub(super) fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    pub(super) fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }
}
