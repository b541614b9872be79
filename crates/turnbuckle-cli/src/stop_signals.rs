//! Signals that ask us to end, for commands that have something to end first.

use std::fs;
use std::future::pending;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for a signal that ends the process: Ctrl-C, SIGTERM, Ctrl-\\, or the hangup of the terminal.
///
/// A program that we started has a process group of its own, so only this process ends it. From the call on no signal is missed,
/// also before the future is polled.
pub(crate) fn stop() -> impl Future<Output = ()> {
    let interrupt = watch(SignalKind::interrupt());
    let terminate = watch(SignalKind::terminate());
    let quit = watch(SignalKind::quit());
    // Who starts us with `nohup` wants it ignored.
    let hangup = (!is_ignored(SignalKind::hangup())).then(|| watch(SignalKind::hangup()));
    async move {
        tokio::select! {
            () = interrupt => {}
            () = terminate => {}
            () = quit => {}
            () = async { match hangup {
                Some(hangup) => hangup.await,
                None => pending().await,
            } } => {}
        }
    }
}

/// Begins to watch for a signal, and returns a future that waits for it.
fn watch(kind: SignalKind) -> impl Future<Output = ()> {
    let signals = signal(kind);
    async move {
        match signals {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(_) => pending().await,
        }
    }
}

/// Says whether a signal is ignored, as far as `/proc` tells.
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.unwrap_or_default() & (1 << (kind.as_raw_value() - 1)) != 0
}
