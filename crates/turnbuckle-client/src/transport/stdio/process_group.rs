//! The process group of a child, on Unix.
//!
//! A group keeps its id as long as it has members, even if the leader has exited; then the id may be reused. So no
//! signal is sent after the group was found empty.

#[cfg(not(unix))]
pub(super) use portable::{ProcessGroup, exit_reason, release};
#[cfg(unix)]
pub(super) use unix::{ProcessGroup, exit_reason, release};

#[cfg(unix)]
mod unix {
    use std::{
        os::unix::process::ExitStatusExt,
        process::ExitStatus,
        sync::atomic::{AtomicBool, Ordering},
    };

    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
    use tokio::process::{Child, ChildStdin, Command};

    use crate::transport::stdio::ExitReason;

    /// The child, and its descendants that did not leave its group.
    #[derive(Debug)]
    pub(in crate::transport::stdio) struct ProcessGroup {
        leader: Option<Pid>,
        gone: AtomicBool,
    }

    impl ProcessGroup {
        /// Makes the child the leader of a new group.
        pub(in crate::transport::stdio) fn make_leader(command: &mut Command) {
            command.process_group(0);
        }

        /// Returns the group of a child that was just started.
        pub(in crate::transport::stdio) fn for_child(child: &Child) -> Self {
            let id = child.id().and_then(|id| id.try_into().ok());
            Self {
                leader: id.and_then(Pid::from_raw),
                gone: AtomicBool::new(false),
            }
        }

        /// Sends SIGTERM to the group; returns whether it has members.
        pub(in crate::transport::stdio) fn terminate(&self) -> bool {
            self.has(|leader| kill_process_group(leader, Signal::TERM).is_ok())
        }

        /// Sends SIGKILL to the group.
        pub(in crate::transport::stdio) fn kill(&self) {
            self.has(|leader| kill_process_group(leader, Signal::KILL).is_ok());
            self.gone.store(true, Ordering::Relaxed);
        }

        /// Returns whether the group is empty. The child counts as a member until it has been waited for.
        pub(in crate::transport::stdio) fn is_gone(&self) -> bool {
            !self.has(|leader| test_kill_process_group(leader).is_ok())
        }

        fn has(&self, someone: impl FnOnce(Pid) -> bool) -> bool {
            let leader = self.leader.filter(|_| !self.gone.load(Ordering::Relaxed));
            let has = leader.is_some_and(someone);
            self.gone.store(!has, Ordering::Relaxed);
            has
        }
    }

    /// Lets a launcher start its program. If the launcher has exited, that is noticed as the exit of the child.
    pub(in crate::transport::stdio) fn release(input: &ChildStdin) {
        // The pipe is empty, so this does not block.
        let _ = rustix::io::write(input, b"\n");
    }

    /// Returns the exit reason of a status.
    pub(in crate::transport::stdio) fn exit_reason(status: ExitStatus) -> ExitReason {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitReason::Code(code),
            (None, Some(signal)) => ExitReason::Signal(signal),
            (None, None) => ExitReason::Unknown,
        }
    }
}

/// Systems without process groups: only the child itself is ended, through its handle.
#[cfg(not(unix))]
mod portable {
    use std::process::ExitStatus;

    use tokio::process::{Child, ChildStdin, Command};

    use crate::transport::stdio::ExitReason;

    /// Has no members to signal; the child is ended through its handle.
    #[derive(Debug)]
    pub(in crate::transport::stdio) struct ProcessGroup(());

    impl ProcessGroup {
        pub(in crate::transport::stdio) fn make_leader(_: &mut Command) {}

        pub(in crate::transport::stdio) fn for_child(_: &Child) -> Self {
            Self(())
        }

        pub(in crate::transport::stdio) fn terminate(&self) -> bool {
            false
        }

        pub(in crate::transport::stdio) fn kill(&self) {}

        pub(in crate::transport::stdio) fn is_gone(&self) -> bool {
            true
        }
    }

    /// Does nothing: launchers are not used.
    pub(in crate::transport::stdio) fn release(_: &ChildStdin) {}

    /// Returns the exit reason of a status.
    pub(in crate::transport::stdio) fn exit_reason(status: ExitStatus) -> ExitReason {
        status.code().map_or(ExitReason::Unknown, ExitReason::Code)
    }
}
