//! A child process that runs.

use std::{sync::Arc, time::Duration};

use tokio::{
    process::{Child, ChildStdin},
    runtime::Handle,
    sync::{Notify, watch},
};

use super::{
    Died, Exit,
    ending::{self, Keeper},
    group::Group,
    observer::SharedObserver,
    output::Output,
    stderr::{Tail, Tap},
};

/// A server that runs as a child process.
///
/// Cheap to clone. When the last clone is dropped, the process ends and all of its group with it: in order, as
/// [`end`](Self::end) does, if a tokio runtime goes on running; at once if not. A connected [`Client`](crate::Client)
/// does not wait for that: its process ends with the last clone of the client.
#[derive(Clone, Debug)]
pub struct Process(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: Option<u32>,
    stage: watch::Receiver<Stage>,
    shared: Arc<Shared>,
    group: Arc<Group>,
}

/// A child process and the two streams to talk to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Started {
    /// The process; dropping it ends it.
    pub process: Process,
    /// Its standard input; dropping it tells the server to end.
    pub input: ChildStdin,
    /// Its standard output.
    pub output: Output,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Told when the process is to end.
    pub(super) asked: Notify,
    stderr: Arc<Tail>,
}

/// How far a process has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Running,
    /// It is gone, but not yet all whom it started.
    Exited(Exit),
    /// It is gone, and its group with it.
    Gone(Exit),
}

impl Stage {
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Running => Exit::Unknown,
            Self::Exited(exit) | Self::Gone(exit) => exit,
        }
    }
}

/// Sets a task beside a child that stays with it until its end.
pub(super) fn keep(
    mut child: Child,
    tap: Option<Tap>,
    grace: Duration,
    observer: Option<SharedObserver>,
) -> Started {
    let observed = observer.zip(child.id());
    let observed = observed.map(|(observer, id)| observer.observe(id));
    let group = Arc::new(Group::of(&child));
    let shared = Arc::<Shared>::default();
    let (sender, stage) = watch::channel(Stage::Running);
    let input = child.stdin.take().expect("the command asks for a pipe");
    let output = child.stdout.take().expect("the command asks for a pipe");
    let stderr = child.stderr.take();
    let process = Process(Arc::new(Inner {
        id: child.id(),
        stage: stage.clone(),
        shared: shared.clone(),
        group: group.clone(),
    }));
    let stderr = stderr.map(|pipe| tokio::spawn(shared.stderr.clone().read(pipe, tap)));
    let keeper = Keeper {
        child,
        group,
        shared,
        stage: sender,
        stderr,
        grace,
        _observed: observed,
    };
    tokio::spawn(keeper.stay());
    Started {
        process,
        input,
        output: Output::new(output, stage),
    }
}

impl Process {
    /// Returns the number that the operating system gave it.
    pub fn id(&self) -> Option<u32> {
        self.0.id
    }

    /// Returns the last 64 KiB of its standard error, if that is captured; what is not UTF-8 is replaced.
    pub fn stderr_tail(&self) -> String {
        self.0.shared.stderr.text()
    }

    /// Returns how it ended, or `None` while it runs.
    pub fn exit(&self) -> Option<Exit> {
        match *self.0.stage.borrow() {
            Stage::Running => None,
            stage => Some(stage.exit()),
        }
    }

    /// Waits until the process ends, by itself or not; returns how, and what it said last.
    pub async fn died(&self) -> Died {
        let exited = |stage: &Stage| !matches!(stage, Stage::Running);
        let exit = ending::reached(self.0.stage.clone(), exited).await;
        Died::new(exit, &self.stderr_tail())
    }

    /// Asks the process and all of its group to end, by SIGTERM where there are signals; does not wait.
    ///
    /// Says whether there was anyone to ask.
    pub fn terminate(&self) -> bool {
        self.0.group.terminate()
    }

    /// Ends the process and all of its group; returns how it ended.
    ///
    /// Drop [`Started::input`] first: a server that sees the end of its input ends by itself.0. One that does not within
    /// the grace gets SIGTERM, and SIGKILL when the grace has passed again. What it started goes with it, also
    /// if it ended before; only a process that left the group stays.
    pub async fn end(&self) -> Exit {
        self.0.shared.asked.notify_one();
        let gone = |stage: &Stage| matches!(stage, Stage::Gone(_));
        ending::reached(self.0.stage.clone(), gone).await
    }

    /// Ends it as dropping does, whoever else holds it.
    pub(crate) fn let_go(&self) {
        self.0.let_go();
    }
}

impl Inner {
    fn let_go(&self) {
        self.shared.asked.notify_one();
        if Handle::try_current().is_err() {
            self.group.kill();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.let_go();
    }
}
