//! Signals that end the process, for commands that clean up first.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};

/// Waits for a signal that ends the process: Ctrl-C, SIGTERM, Ctrl-\\, or SIGHUP.
///
/// Child programs have their own process groups, so only this process ends them. Signals are recorded from the call
/// on, even before the future is polled.
#[cfg(unix)]
pub(crate) fn interrupt_signal() -> impl Future<Output = ()> {
    let interrupt = watch(SignalKind::interrupt());
    let terminate = watch(SignalKind::terminate());
    let quit = watch(SignalKind::quit());
    // With `nohup` the signal has to stay ignored.
    let hangup = (!is_ignored(SignalKind::hangup())).then(|| watch(SignalKind::hangup()));
    async move {
        tokio::select! {
            () = interrupt => {}
            () = terminate => {}
            () = quit => {}
            () = async { match hangup {
                Some(hangup) => hangup.await,
                None => std::future::pending().await,
            } } => {}
        }
    }
}

/// Registers a signal handler, and returns a future that waits for the signal.
#[cfg(unix)]
fn watch(kind: SignalKind) -> impl Future<Output = ()> {
    let signals = signal(kind);
    async move {
        match signals {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    }
}

/// Returns whether a signal is ignored, according to `/proc`.
#[cfg(unix)]
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.unwrap_or_default() & (1 << (kind.as_raw_value() - 1)) != 0
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub(crate) async fn interrupt_signal() {
    let _ = tokio::signal::ctrl_c().await;
}

/// Receives Ctrl-C, and on Unix SIGTERM, SIGQUIT and SIGHUP. Signals are recorded from its creation on.
///
/// It has to receive what [`interrupt_signal`] waits for: the handler of a signal stays installed, so that one that
/// nothing receives is ignored.
#[derive(Debug)]
#[allow(
    dead_code,
    reason = "used by the optional commands `bridge` and `serve`"
)]
pub(crate) struct ShutdownSignals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    quit: Signal,
    /// `None` if the signal is ignored, as with `nohup`.
    #[cfg(unix)]
    hangup: Option<Signal>,
    #[cfg(windows)]
    interrupt: CtrlC,
}

#[cfg(unix)]
#[allow(
    dead_code,
    reason = "used by the optional commands `bridge` and `serve`"
)]
impl ShutdownSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: if is_ignored(SignalKind::hangup()) {
                None
            } else {
                Some(signal(SignalKind::hangup())?)
            },
        })
    }

    /// Receives all but SIGHUP, for commands that handle it with [`HangupSignal`].
    pub(crate) fn without_hangup() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: None,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.quit.recv() => {}
            () = async { match &mut self.hangup {
                Some(hangup) => { hangup.recv().await; }
                None => std::future::pending().await,
            } } => {}
        }
    }
}

#[cfg(windows)]
#[allow(
    dead_code,
    reason = "used by the optional commands `bridge` and `serve`"
)]
impl ShutdownSignals {
    pub(crate) fn new() -> io::Result<Self> {
        let interrupt = ctrl_c()?;
        Ok(Self { interrupt })
    }

    /// Receives the same signals: this system has no SIGHUP.
    pub(crate) fn without_hangup() -> io::Result<Self> {
        Self::new()
    }

    /// Waits for the next signal.
    pub(crate) async fn recv(&mut self) {
        let _ = self.interrupt.recv().await;
    }
}

/// Receives SIGHUP. Signals are recorded from its creation on.
#[derive(Debug)]
#[allow(dead_code, reason = "used by the optional command `bridge`")]
pub(crate) struct HangupSignal {
    /// `None` if the signal is ignored, as with `nohup`.
    #[cfg(unix)]
    hangup: Option<Signal>,
}

#[cfg(unix)]
#[allow(dead_code, reason = "used by the optional command `bridge`")]
impl HangupSignal {
    pub(crate) fn new() -> io::Result<Self> {
        let is_ignored = is_ignored(SignalKind::hangup());
        let hangup = (!is_ignored).then(|| signal(SignalKind::hangup()));
        Ok(Self {
            hangup: hangup.transpose()?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn recv(&mut self) {
        match &mut self.hangup {
            Some(hangup) => {
                hangup.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
#[allow(dead_code, reason = "used by the optional command `bridge`")]
impl HangupSignal {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Never returns: this system has no such signal.
    pub(crate) async fn recv(&mut self) {
        std::future::pending().await
    }
}

/// Receives the signals that a client or a terminal sends to a server, to pass them on.
#[derive(Debug)]
#[allow(dead_code, reason = "used by the optional command `record`")]
pub(crate) struct ForwardedSignals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    quit: Signal,
    /// `None` if the signal is ignored, as with `nohup`; then the program ignores it too.
    #[cfg(unix)]
    hangup: Option<Signal>,
    #[cfg(unix)]
    user1: Signal,
    #[cfg(unix)]
    user2: Signal,
}

/// A signal to pass on.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "used by the optional command `record`")]
pub(crate) struct ForwardedSignal(#[cfg(unix)] rustix::process::Signal);

#[cfg(unix)]
#[allow(dead_code, reason = "used by the optional command `record`")]
impl ForwardedSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: (!is_ignored(SignalKind::hangup()))
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn recv(&mut self) -> ForwardedSignal {
        use rustix::process::Signal;
        ForwardedSignal(tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.quit.recv() => Signal::QUIT,
            () = async { match &mut self.hangup {
                Some(hangup) => { hangup.recv().await; }
                None => std::future::pending().await,
            } } => Signal::HUP,
            _ = self.user1.recv() => Signal::USR1,
            _ = self.user2.recv() => Signal::USR2,
        })
    }
}

#[cfg(unix)]
#[allow(dead_code, reason = "used by the optional command `record`")]
impl ForwardedSignal {
    /// Sends the signal to a process group.
    pub(crate) fn send_to_group(self, id: Option<u32>) {
        let group = id.and_then(|id| id.try_into().ok());
        if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, self.0);
        }
    }
}

#[cfg(not(unix))]
#[allow(dead_code, reason = "used by the optional command `record`")]
impl ForwardedSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Never returns: the console sends Ctrl-C to both processes.
    pub(crate) async fn recv(&mut self) -> ForwardedSignal {
        // Keeps this process until the program has ended.
        loop {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

#[cfg(not(unix))]
#[allow(dead_code, reason = "used by the optional command `record`")]
impl ForwardedSignal {
    /// Does nothing.
    pub(crate) fn send_to_group(self, _id: Option<u32>) {}
}
