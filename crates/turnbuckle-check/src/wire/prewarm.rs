//! Starts server processes in advance, because many take a second to start.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_client::stdio::{ServerCommand, SpawnError, SpawnedProcess};

/// The maximum number of idle processes.
const MAX_PREWARMED: usize = 6;

/// The number of processes started for each that is taken, up to the maximum.
const SPAWNED_PER_START: usize = 2;

/// Starts a server repeatedly; cheap to clone.
#[derive(Clone)]
pub(crate) struct ProcessPrewarmer {
    /// The command.
    pub(crate) child: ServerCommand,
    idle: Arc<Mutex<VecDeque<PrewarmedProcess>>>,
    slowest: Arc<AtomicU64>,
}

/// A process that has not been used.
pub(crate) struct PrewarmedProcess {
    pub(crate) started: SpawnedProcess,
    /// Measures its startup time.
    pub(crate) startup: StartupTimer,
}

/// Measures the time from the start of a process to its first message.
pub(crate) struct StartupTimer {
    started: Instant,
    slowest: Arc<AtomicU64>,
}

impl ProcessPrewarmer {
    pub(crate) fn new(child: ServerCommand) -> Self {
        Self {
            child,
            idle: Arc::default(),
            slowest: Arc::default(),
        }
    }

    /// Returns an idle or a new process, and starts more in advance.
    pub(crate) fn start(&self) -> Result<PrewarmedProcess, SpawnError> {
        let mut idle = self.idle();
        idle.retain(|ready| ready.started.process.exit().is_none());
        let taken = match idle.pop_front() {
            Some(ready) => ready,
            None => self.spawn()?,
        };
        for _ in 0..SPAWNED_PER_START {
            if idle.len() < MAX_PREWARMED
                && let Ok(ready) = self.spawn()
            {
                idle.push_back(ready);
            }
        }
        Ok(taken)
    }

    /// Stops the idle processes.
    pub(crate) fn stop(&self) {
        self.idle().clear();
    }

    fn spawn(&self) -> Result<PrewarmedProcess, SpawnError> {
        let startup = StartupTimer {
            started: Instant::now(),
            slowest: Arc::clone(&self.slowest),
        };
        let started = self.child.start()?;
        Ok(PrewarmedProcess { started, startup })
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<PrewarmedProcess>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StartupTimer {
    /// Records the first message.
    pub(crate) fn record_first_message(&self) {
        let duration = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.slowest.fetch_max(duration, Ordering::Relaxed);
    }

    /// Returns the longest startup time so far.
    pub(crate) fn slowest(&self) -> Duration {
        Duration::from_millis(self.slowest.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slowest_startup_is_recorded() {
        let slowest = Arc::<AtomicU64>::default();
        for seconds in [2, 1] {
            let startup = StartupTimer {
                started: Instant::now(),
                slowest: Arc::clone(&slowest),
            };
            tokio::time::advance(Duration::from_secs(seconds)).await;
            startup.record_first_message();

            assert_eq!(startup.slowest(), Duration::from_secs(2));
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn processes_are_started_in_advance_until_stopped() {
        let prewarmer = ProcessPrewarmer::new(ServerCommand::new("cat"));
        let first = prewarmer.start().unwrap();
        let next = prewarmer.idle()[0].started.process.id();

        let second = prewarmer.start().unwrap();

        assert_eq!(second.started.process.id(), next);
        assert_ne!(first.started.process.id(), next);
        assert!(prewarmer.idle().len() <= MAX_PREWARMED);
        prewarmer.stop();
        assert!(prewarmer.idle().is_empty());
    }
}
