//! A child where there are no process groups: it is ended alone, by its own handle, and nobody can be asked to end.

use std::process::ExitStatus;

use tokio::process::{Child, Command};

use super::Exit;

/// Nobody but the child, whom its handle ends.
#[derive(Debug)]
pub(super) struct Group(());

impl Group {
    pub(super) fn lead(_: &mut Command) {}

    pub(super) fn of(_: &Child) -> Self {
        Self(())
    }

    pub(super) fn terminate(&self) -> bool {
        false
    }

    pub(super) fn kill(&self) {}

    pub(super) fn is_gone(&self) -> bool {
        true
    }
}

/// Says how a process ended.
pub(super) fn exit(status: ExitStatus) -> Exit {
    status.code().map_or(Exit::Unknown, Exit::Code)
}
