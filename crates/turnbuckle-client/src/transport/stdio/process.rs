//! A running child process.

use std::{
    ffi::OsString,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    runtime::Handle,
    sync::{Notify, watch},
    time::sleep,
};

use crate::transport::stdio::{
    ExitReason, ProcessExited,
    process_group::ProcessGroup,
    reaper::{self, ProcessReaper},
    stderr::{StderrOutput, StderrTail},
};

/// A server that runs as a child process.
///
/// Cheap to clone. When the last clone is dropped, the process and its group are ended: as [`end`](Self::end) does if a
/// tokio runtime is running, and killed immediately otherwise. The process of a connected [`Client`](crate::Client)
/// ends with the last clone of the client.
#[derive(Clone, Debug)]
pub struct Process(Arc<ProcessInner>);

#[derive(Debug)]
struct ProcessInner {
    id: Option<u32>,
    stage: watch::Receiver<ProcessStage>,
    shared: Arc<ProcessShared>,
    group: Arc<ProcessGroup>,
}

/// A child process with its stdin and stdout.
#[derive(Debug)]
#[non_exhaustive]
pub struct SpawnedProcess {
    /// The process; dropping it ends it.
    pub process: Process,
    /// Its stdin; dropping it asks the server to exit.
    pub input: ChildStdin,
    /// Its stdout.
    pub output: ServerStdout,
    /// Its stderr, with [`StderrMode::Piped`](super::StderrMode::Piped).
    pub error_output: Option<ChildStderr>,
}

#[derive(Debug, Default)]
pub(super) struct ProcessShared {
    /// Notified when the process should end.
    pub(super) end_requested: Notify,
    stderr: Arc<StderrTail>,
}

/// The stage of a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProcessStage {
    Running,
    /// The process has exited, but its group may still have members.
    Exited(ExitReason),
    /// The process has exited, and its group is empty.
    Gone(ExitReason),
}

impl ProcessStage {
    pub(super) fn exit(self) -> ExitReason {
        match self {
            Self::Running => ExitReason::Unknown,
            Self::Exited(exit) | Self::Gone(exit) => exit,
        }
    }
}

/// Starts the task that supervises a child until it has exited.
pub(super) fn supervise(
    mut child: Child,
    stderr: StderrOutput,
    kill_timeout: Duration,
    observer: Option<SharedObserver>,
) -> SpawnedProcess {
    let observed = observer.zip(child.id());
    let observed = observed.map(|(observer, id)| observer.observe(id));
    let group = Arc::new(ProcessGroup::for_child(&child));
    let shared = Arc::<ProcessShared>::default();
    let (sender, stage) = watch::channel(ProcessStage::Running);
    let input = child.stdin.take().expect("the command configures a pipe");
    let output = child.stdout.take().expect("the command configures a pipe");
    let pipe = child.stderr.take();
    let process = Process(Arc::new(ProcessInner {
        id: child.id(),
        stage: stage.clone(),
        shared: shared.clone(),
        group: group.clone(),
    }));
    let (stderr, error_output) = match stderr {
        StderrOutput::Piped => (None, pipe),
        StderrOutput::Lines(taps) => {
            let read = |pipe| tokio::spawn(shared.stderr.clone().read(pipe, taps));
            (pipe.map(read), None)
        }
    };
    let reaper = ProcessReaper {
        child,
        group,
        shared,
        stage: sender,
        stderr,
        kill_timeout,
        _observed: observed,
    };
    tokio::spawn(reaper.run());
    SpawnedProcess {
        process,
        input,
        output: ServerStdout::new(output, stage),
        error_output,
    }
}

impl Process {
    /// Returns the process id.
    pub fn id(&self) -> Option<u32> {
        self.0.id
    }

    /// Returns the last 64 KiB of stderr, if it is captured; invalid UTF-8 is replaced.
    pub fn stderr_tail(&self) -> String {
        self.0.shared.stderr.text()
    }

    /// Returns the exit reason, or `None` while the process runs.
    pub fn exit(&self) -> Option<ExitReason> {
        match *self.0.stage.borrow() {
            ProcessStage::Running => None,
            stage => Some(stage.exit()),
        }
    }

    /// Waits until the process has exited; returns the reason and the last lines of stderr.
    pub async fn wait(&self) -> ProcessExited {
        let exited = |stage: &ProcessStage| !matches!(stage, ProcessStage::Running);
        let exit = reaper::reached(self.0.stage.clone(), exited).await;
        ProcessExited::new(exit, &self.stderr_tail())
    }

    /// Sends SIGTERM to the process and its group, on systems with signals; does not wait.
    ///
    /// Returns whether a process received it.
    pub fn terminate(&self) -> bool {
        self.0.group.terminate()
    }

    /// Ends the process and its group; returns the exit reason.
    ///
    /// Drop [`SpawnedProcess::input`] first: a server exits at the end of its input. If it does not within the kill
    /// timeout, it gets SIGTERM, and SIGKILL after the same time again. Its descendants are ended too, even if the
    /// process exited before; only a process that left the group stays.
    pub async fn end(&self) -> ExitReason {
        self.0.shared.end_requested.notify_one();
        let gone = |stage: &ProcessStage| matches!(stage, ProcessStage::Gone(_));
        reaper::reached(self.0.stage.clone(), gone).await
    }

    /// Ends the process in the background, as dropping does, even if other clones exist.
    pub(crate) fn end_in_background(&self) {
        self.0.end_in_background();
    }
}

impl ProcessInner {
    fn end_in_background(&self) {
        self.shared.end_requested.notify_one();
        if Handle::try_current().is_err() {
            self.group.kill();
        }
    }
}

impl Drop for ProcessInner {
    fn drop(&mut self) {
        self.end_in_background();
    }
}

/// Observes the start and the end of child processes.
///
/// A program that is killed cannot end its children. An observer records them, so that another process can end them.
/// The methods are called from async code and must not block for long.
pub trait ProcessObserver: Send + Sync {
    /// A child is about to be started.
    fn starting(&self) {}

    /// Returns a command that starts the program of the child, on Unix; `None` by default.
    ///
    /// The launcher gets the program and its arguments as further arguments. It must read one byte from stdin, exit if
    /// there is none, and otherwise replace itself with the program (`exec`). The byte is sent after
    /// [`started`](Self::started) has returned. So the program runs only if the observer knows the process, even if
    /// this process is killed while it starts the child.
    fn launcher(&self) -> Option<Vec<OsString>> {
        None
    }

    /// A child was started. On Unix it leads the process group with this id.
    fn started(&self, id: u32);

    /// The child has exited and its process group is empty, so the id may be reused.
    fn ended(&self, id: u32);
}

/// An observer that processes share.
#[derive(Clone)]
pub(super) struct SharedObserver(pub(super) Arc<dyn ProcessObserver>);

/// Reports the start of a process, and its end when it is dropped.
pub(super) struct ObservedProcess {
    observer: SharedObserver,
    id: u32,
}

impl SharedObserver {
    pub(super) fn observe(self, id: u32) -> ObservedProcess {
        self.0.started(id);
        ObservedProcess { observer: self, id }
    }
}

impl Drop for ObservedProcess {
    fn drop(&mut self) {
        self.observer.0.ended(self.id);
    }
}

impl fmt::Debug for SharedObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessObserver")
    }
}

/// Maximum time to read after the process has exited: its output is already in the pipe.
const STDOUT_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// The stdout of a child process.
///
/// Ends shortly after the process, even if a descendant that left the group still holds the pipe open.
pub struct ServerStdout {
    stdout: ChildStdout,
    /// Resolves when reading should stop; `None` afterwards.
    drained: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl ServerStdout {
    pub(super) fn new(stdout: ChildStdout, stage: watch::Receiver<ProcessStage>) -> Self {
        let drained = async {
            reaper::reached(stage, |stage| !matches!(stage, ProcessStage::Running)).await;
            sleep(STDOUT_DRAIN_TIMEOUT).await;
        };
        Self {
            stdout,
            drained: Some(Box::pin(drained)),
        }
    }
}

impl AsyncRead for ServerStdout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(outcome) = Pin::new(&mut self.stdout).poll_read(cx, buffer) {
            return Poll::Ready(outcome);
        }
        if let Some(drained) = &mut self.drained {
            ready!(drained.as_mut().poll(cx));
            self.drained = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl std::fmt::Debug for ServerStdout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerStdout").finish_non_exhaustive()
    }
}
