//! Progress reports of calls.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hasher},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use futures_core::Stream;
use tokio::{sync::mpsc, time::Instant};
use turnbuckle_protocol::types::ProgressParams;

use crate::{callbacks, sync::lock};

/// A progress report.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The progress so far; increases with every report.
    pub progress: f64,
    /// The total, if the server knows it.
    pub total: Option<f64>,
    /// A description of the current step.
    pub message: Option<String>,
}

/// The progress reports of one call, as a stream.
#[derive(Debug)]
pub struct ProgressStream(mpsc::Receiver<Progress>);

impl ProgressStream {
    /// Maximum number of queued reports.
    const MAX_QUEUED_REPORTS: usize = 64;

    /// Returns the callback that feeds the stream, and the stream.
    pub(crate) fn new() -> (impl Fn(Progress) + Send + Sync + 'static, Self) {
        let (sender, receiver) = mpsc::channel(Self::MAX_QUEUED_REPORTS);
        let callback = move |progress| {
            // A report is dropped if the queue is full; the next report supersedes it.
            let _ = sender.try_send(progress);
        };
        (callback, Self(receiver))
    }

    /// Returns the next report, or `None` once the call has ended.
    pub async fn next(&mut self) -> Option<Progress> {
        self.0.recv().await
    }
}

impl Stream for ProgressStream {
    type Item = Progress;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

/// A callback for progress reports.
pub(crate) type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// The calls that accept progress, by token.
#[derive(Debug, Default)]
pub(crate) struct ProgressRegistry(Mutex<EntriesByToken>);

type EntriesByToken = HashMap<i64, Arc<ProgressEntry>, BuildHasherDefault<TokenHasher>>;

/// One call that accepts progress.
pub(crate) struct ProgressEntry {
    last: Mutex<LastProgress>,
    callback: Option<OnProgress>,
}

struct LastProgress {
    at: Instant,
    progress: f64,
}

impl ProgressRegistry {
    /// Registers a token until the guard is dropped.
    pub(crate) fn register(
        self: &Arc<Self>,
        token: i64,
        callback: Option<OnProgress>,
    ) -> ProgressGuard {
        let entry = Arc::new(ProgressEntry {
            last: Mutex::new(LastProgress {
                at: Instant::now(),
                progress: f64::NEG_INFINITY,
            }),
            callback,
        });
        lock(&self.0).insert(token, Arc::clone(&entry));
        ProgressGuard {
            progress_registry: Arc::clone(self),
            token,
            entry,
        }
    }

    /// Records a report; returns `false` if its token is unknown.
    pub(crate) fn report(&self, params: ProgressParams) -> bool {
        let entry = params.progress_token.as_i64().and_then(|token| {
            let progress_registry = lock(&self.0);
            progress_registry.get(&token).cloned()
        });
        let Some(entry) = entry else {
            return false;
        };
        entry.record(params);
        true
    }
}

impl ProgressEntry {
    /// Every report counts as activity; the callback is called only if the progress increased.
    fn record(&self, params: ProgressParams) {
        let mut last = lock(&self.last);
        last.at = Instant::now();
        if params.progress <= last.progress {
            return;
        }
        last.progress = params.progress;
        drop(last);
        if let Some(callback) = &self.callback {
            let progress = Progress {
                progress: params.progress,
                total: params.total,
                message: params.message,
            };
            callbacks::notify_observer(|| callback(progress));
        }
    }
}

impl fmt::Debug for ProgressEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressEntry").finish_non_exhaustive()
    }
}

/// Keeps a token registered.
#[derive(Debug)]
pub(crate) struct ProgressGuard {
    progress_registry: Arc<ProgressRegistry>,
    token: i64,
    entry: Arc<ProgressEntry>,
}

impl ProgressGuard {
    /// Returns the time of the last report, or of the registration.
    pub(crate) fn last_seen(&self) -> Instant {
        lock(&self.entry.last).at
    }
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        lock(&self.progress_registry.0).remove(&self.token);
    }
}

/// Hashes tokens. The client generates them, so a peer cannot choose colliding ones.
#[derive(Default)]
struct TokenHasher(u64);

impl Hasher for TokenHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, number: i64) {
        // Multiplication by an odd constant spreads the value to the high bits.
        self.0 = (self.0 ^ number.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
