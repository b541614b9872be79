//! Signals that ask us to end.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};

/// Watches for Ctrl-C, and for SIGTERM where there is one. None is lost from here on.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(windows)]
    interrupt: CtrlC,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn came(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
impl Signals {
    pub(super) fn watch() -> io::Result<Self> {
        let interrupt = ctrl_c()?;
        Ok(Self { interrupt })
    }

    /// Waits for the next one.
    pub(super) async fn came(&mut self) {
        let _ = self.interrupt.recv().await;
    }
}
