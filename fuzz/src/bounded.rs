//! Runs a future that must end.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{runtime::Builder, time::timeout};

/// Longer than the sum of the server's timeouts.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// The number of times the paused clock may advance.
const MAX_CLOCK_ADVANCES: usize = 100_000;

/// Runs a future on a paused clock, which jumps ahead whenever everything waits.
///
/// # Panics
///
/// If it does not end: a hang is a finding.
pub fn run<F: Future>(future: F) -> F::Output {
    let rests = AtomicUsize::new(0);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || {
            let rests = rests.fetch_add(1, Ordering::Relaxed);
            assert!(
                rests < MAX_CLOCK_ADVANCES,
                "the clock was advanced too often"
            );
        })
        .build()
        .expect("a runtime without input and output needs nothing of the system");
    runtime.block_on(async {
        let ended = timeout(MAX_DURATION, future).await;
        ended.expect("this ends within a day")
    })
}
