//! How far a call has come.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use turnbuckle_protocol::types::ProgressParams;

use crate::callbacks::guard;

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How far it is; grows from one report to the next.
    pub progress: f64,
    /// Where it ends, if the server knows.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// The progress of one call, as a stream.
#[derive(Debug)]
pub struct ProgressStream(mpsc::Receiver<Progress>);

impl ProgressStream {
    /// How much may wait to be read.
    const UNREAD: usize = 64;

    /// Returns what to call with progress, and where it comes out.
    pub(crate) fn new() -> (impl Fn(Progress) + Send + Sync + 'static, Self) {
        let (sender, receiver) = mpsc::channel(Self::UNREAD);
        let tell = move |progress| {
            // What finds no room is missed; the next report says as much.
            let _ = sender.try_send(progress);
        };
        (tell, Self(receiver))
    }

    /// Returns the next report; `None` once the call is over.
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

/// Who is told about progress.
pub(crate) type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// The calls that wait for progress, by their tokens.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<ByToken>);

type ByToken = HashMap<i64, Arc<Watcher>, BuildHasherDefault<Counted>>;

/// One call that waits for progress.
pub(crate) struct Watcher {
    seen: Mutex<Seen>,
    tell: Option<OnProgress>,
}

struct Seen {
    at: Instant,
    progress: f64,
}

impl Watchers {
    /// Watches a token until the guard is dropped.
    pub(crate) fn watch(self: &Arc<Self>, token: i64, tell: Option<OnProgress>) -> Watching {
        let watcher = Arc::new(Watcher {
            seen: Mutex::new(Seen {
                at: Instant::now(),
                progress: f64::NEG_INFINITY,
            }),
            tell,
        });
        self.lock().insert(token, Arc::clone(&watcher));
        Watching {
            watchers: Arc::clone(self),
            token,
            watcher,
        }
    }

    /// Notes progress; `false` if nobody waits for it.
    pub(crate) fn report(&self, params: ProgressParams) -> bool {
        let watcher = params.progress_token.as_i64().and_then(|token| {
            let watchers = self.lock();
            watchers.get(&token).cloned()
        });
        let Some(watcher) = watcher else {
            return false;
        };
        watcher.note(params);
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ByToken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    /// Any report is a sign of life; only one that goes on is told.
    fn note(&self, params: ProgressParams) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.at = Instant::now();
        if params.progress <= seen.progress {
            return;
        }
        seen.progress = params.progress;
        drop(seen);
        if let Some(tell) = &self.tell {
            let progress = Progress {
                progress: params.progress,
                total: params.total,
                message: params.message,
            };
            guard::tell(|| tell(progress));
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

/// Keeps a token watched.
#[derive(Debug)]
pub(crate) struct Watching {
    watchers: Arc<Watchers>,
    token: i64,
    watcher: Arc<Watcher>,
}

impl Watching {
    /// Returns when progress was last made; at first, when watching began.
    pub(crate) fn last_seen(&self) -> Instant {
        let seen = self.watcher.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).at
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watchers.lock().remove(&self.token);
    }
}

/// Spreads tokens over a table. We count them up ourselves, so nobody else can choose some that collide.
#[derive(Default)]
struct Counted(u64);

impl Hasher for Counted {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, number: i64) {
        // Multiplying by an odd number without a pattern reaches the high bits too.
        self.0 = (self.0 ^ number.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
