//! Starts server processes in advance, because many take a second to start.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::time::Instant;
use turnbuckle_client::stdio::{ServerCommand, SpawnError, SpawnedProcess};

use super::pace::ServerPace;
use crate::lock;

/// The maximum number of idle processes.
const MAX_PREWARMED: usize = 6;

/// The maximum number of idle processes that start slowly: they compete for the processor with those in use.
const MAX_SLOW_PREWARMED: usize = 1;

/// The number of processes started for each that is taken, up to the maximum.
const SPAWNED_PER_START: usize = 2;

/// Starts a server repeatedly; cheap to clone.
#[derive(Clone)]
pub(crate) struct ProcessPrewarmer {
    /// The command.
    pub(crate) child: ServerCommand,
    idle: Arc<Mutex<VecDeque<SpawnedProcess>>>,
    pace: ServerPace,
}

/// A process that has not been used.
pub(crate) struct PrewarmedProcess {
    pub(crate) started: SpawnedProcess,
    /// Measures the time until its first message.
    pub(crate) startup: StartupTimer,
}

/// Measures how long a session waits for the first message of its process.
pub(crate) struct StartupTimer {
    taken: Instant,
    pace: ServerPace,
}

impl ProcessPrewarmer {
    pub(crate) fn new(child: ServerCommand, pace: ServerPace) -> Self {
        Self {
            child,
            idle: Arc::default(),
            pace,
        }
    }

    /// Returns an idle or a new process, and starts more in advance if the server starts fast.
    pub(crate) fn start(&self) -> Result<PrewarmedProcess, SpawnError> {
        let mut idle = self.idle();
        idle.retain(|ready| ready.process.exit().is_none());
        let started = match idle.pop_front() {
            Some(ready) => ready,
            None => self.child.start()?,
        };
        let startup = StartupTimer {
            taken: Instant::now(),
            pace: self.pace.clone(),
        };
        for _ in 0..SPAWNED_PER_START {
            if idle.len() < self.max_idle()
                && let Ok(ready) = self.child.start()
            {
                idle.push_back(ready);
            }
        }
        Ok(PrewarmedProcess { started, startup })
    }

    /// Returns the number of processes to keep idle; none before the first start was measured.
    fn max_idle(&self) -> usize {
        match self.pace.slowest_start() {
            None => 0,
            Some(_) if self.pace.starts_slowly() => MAX_SLOW_PREWARMED,
            Some(_) => MAX_PREWARMED,
        }
    }

    /// Stops the idle processes.
    pub(crate) fn stop(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<SpawnedProcess>> {
        lock(&self.idle)
    }
}

impl StartupTimer {
    /// Records the first message.
    pub(crate) fn record_first_message(&self) {
        self.pace.record_start(self.taken.elapsed());
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn prewarmer(startup: Duration) -> ProcessPrewarmer {
        let pace = ServerPace::default();
        let prewarmer = ProcessPrewarmer::new(ServerCommand::new("cat"), pace.clone());
        // The first process is started alone.
        let first = prewarmer.start().unwrap();
        assert!(prewarmer.idle().is_empty());
        pace.record_start(startup);
        drop(first);
        prewarmer
    }

    #[tokio::test]
    async fn fast_processes_are_started_in_advance_until_stopped() {
        let prewarmer = prewarmer(Duration::from_millis(5));
        let first = prewarmer.start().unwrap();
        let next = prewarmer.idle()[0].process.id();

        let second = prewarmer.start().unwrap();

        assert_eq!(second.started.process.id(), next);
        assert_ne!(first.started.process.id(), next);
        assert!((2..=MAX_PREWARMED).contains(&prewarmer.idle().len()));
        prewarmer.stop();
        assert!(prewarmer.idle().is_empty());
    }

    #[tokio::test]
    async fn slow_processes_are_not_started_many_at_once() {
        let prewarmer = prewarmer(Duration::from_secs(1));

        for _ in 0..4 {
            drop(prewarmer.start().unwrap());

            assert_eq!(prewarmer.idle().len(), MAX_SLOW_PREWARMED);
        }
        prewarmer.stop();
    }
}
