//! The process group that a child leads, on Unix.
//!
//! A group keeps its number for as long as anyone is in it, also when the leader is gone; after that the number may come
//! to mean others. So nobody is signalled any more once the group was seen empty.

use std::{
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

use super::Exit;

/// The child and all its descendants that did not leave its group.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
    gone: AtomicBool,
}

impl Group {
    /// Makes the child the leader of a new group.
    pub(super) fn lead(command: &mut Command) {
        command.process_group(0);
    }

    /// Returns the group of a child that was just started.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| id.try_into().ok());
        Self {
            leader: id.and_then(Pid::from_raw),
            gone: AtomicBool::new(false),
        }
    }

    /// Asks everyone in it to end, and says whether there was anyone to ask.
    pub(super) fn terminate(&self) -> bool {
        self.has(|leader| kill_process_group(leader, Signal::TERM).is_ok())
    }

    /// Ends everyone in it at once.
    pub(super) fn kill(&self) {
        self.has(|leader| kill_process_group(leader, Signal::KILL).is_ok());
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Says whether nobody is left in it. As long as the child was not waited for, it counts.
    pub(super) fn is_gone(&self) -> bool {
        !self.has(|leader| test_kill_process_group(leader).is_ok())
    }

    fn has(&self, someone: impl FnOnce(Pid) -> bool) -> bool {
        let leader = self.leader.filter(|_| !self.gone.load(Ordering::Relaxed));
        let has = leader.is_some_and(someone);
        self.gone.store(!has, Ordering::Relaxed);
        has
    }
}

/// Says how a process ended.
pub(super) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}
