//! Processes that are started before anybody wants them: many a server takes a second until it listens.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use turnbuckle_client::stdio::{Child, SpawnError, Started};

/// How many processes wait at most.
const WAITING: usize = 6;

/// How many are started for each that is taken, as long as there is room: whoever wants one wants none.
const AT_ONCE: usize = 2;

/// Starts a server again and again; cheap to clone.
#[derive(Clone)]
pub(crate) struct Starter {
    /// How it is started.
    pub(crate) child: Child,
    waiting: Arc<Mutex<VecDeque<Ready>>>,
    slowest: Arc<AtomicU64>,
}

/// A process in which nothing was said yet.
pub(crate) struct Ready {
    pub(crate) started: Started,
    /// How long it takes to listen.
    pub(crate) warming: Warming,
}

/// Finds out how long a server takes from its start to the first thing that it says.
pub(crate) struct Warming {
    begun: Instant,
    slowest: Arc<AtomicU64>,
}

impl Starter {
    pub(crate) fn new(child: Child) -> Self {
        Self {
            child,
            waiting: Arc::default(),
            slowest: Arc::default(),
        }
    }

    /// Returns a process that was started long ago or just now, and lets others start for those who come next.
    pub(crate) fn start(&self) -> Result<Ready, SpawnError> {
        let mut waiting = self.waiting();
        waiting.retain(|ready| ready.started.process.exit().is_none());
        let taken = match waiting.pop_front() {
            Some(ready) => ready,
            None => self.anew()?,
        };
        for _ in 0..AT_ONCE {
            if waiting.len() < WAITING
                && let Ok(ready) = self.anew()
            {
                waiting.push_back(ready);
            }
        }
        Ok(taken)
    }

    /// Ends those that nobody has wanted.
    pub(crate) fn dismiss(&self) {
        self.waiting().clear();
    }

    fn anew(&self) -> Result<Ready, SpawnError> {
        let warming = Warming {
            begun: Instant::now(),
            slowest: Arc::clone(&self.slowest),
        };
        let started = self.child.start()?;
        Ok(Ready { started, warming })
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Ready>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Warming {
    /// The server has said something for the first time.
    pub(crate) fn spoke(&self) {
        let took = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.slowest.fetch_max(took, Ordering::Relaxed);
    }

    /// Returns how long the slowest has taken so far.
    pub(crate) fn slowest(&self) -> Duration {
        Duration::from_millis(self.slowest.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_slowest_start_is_remembered() {
        let slowest = Arc::<AtomicU64>::default();
        for seconds in [2, 1] {
            let warming = Warming {
                begun: Instant::now(),
                slowest: Arc::clone(&slowest),
            };
            tokio::time::advance(Duration::from_secs(seconds)).await;
            warming.spoke();

            assert_eq!(warming.slowest(), Duration::from_secs(2));
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn some_wait_for_those_who_come_next_until_they_are_dismissed() {
        let starter = Starter::new(Child::new("cat"));
        let first = starter.start().unwrap();
        let next = starter.waiting()[0].started.process.id();

        let second = starter.start().unwrap();

        assert_eq!(second.started.process.id(), next);
        assert_ne!(first.started.process.id(), next);
        assert!(starter.waiting().len() <= WAITING);
        starter.dismiss();
        assert!(starter.waiting().is_empty());
    }
}
