//! CPU time and memory used by this process.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// Measures wall time and CPU time.
pub(crate) struct Stopwatch {
    started: Instant,
    processor: Duration,
}

impl Stopwatch {
    /// Starts the measurement.
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            processor: processor(),
        }
    }

    /// Returns the wall time.
    pub(crate) fn wall(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the CPU time of all threads.
    pub(crate) fn processor(&self) -> Duration {
        processor() - self.processor
    }
}

/// Returns the peak memory of this process in bytes, if the system reports it.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the size on disk of a database, including its side files.
pub(crate) fn on_disk(database: &Path) -> u64 {
    let length = |suffix: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(name).map_or(0, |file| file.len())
    };
    length("") + length("-wal")
}

fn processor() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.try_into()
        .expect("time of the processor is not negative")
}
