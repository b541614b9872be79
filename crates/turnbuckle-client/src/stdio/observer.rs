//! Tells a program which processes it has to answer for.

use std::{fmt, sync::Arc};

/// Is told when a child process starts, and when it and its process group are gone.
///
/// A program that is killed cannot end its children. This tells it which they are while it lives, so that another
/// process can end them in its place. The methods are called from async code and must not block for long.
pub trait ProcessObserver: Send + Sync {
    /// A child is about to be started.
    fn starting(&self) {}

    /// A child was started. On Unix it leads the process group of this number.
    fn started(&self, id: u32);

    /// The child and its process group are gone, so the number may come to mean another process.
    fn ended(&self, id: u32);
}

/// An observer that is shared between processes.
#[derive(Clone)]
pub(super) struct SharedObserver(pub(super) Arc<dyn ProcessObserver>);

/// Reports the start of a process, and its end when it is dropped.
pub(super) struct Observed {
    observer: SharedObserver,
    id: u32,
}

impl SharedObserver {
    pub(super) fn observe(self, id: u32) -> Observed {
        self.0.started(id);
        Observed { observer: self, id }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.observer.0.ended(self.id);
    }
}

impl fmt::Debug for SharedObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessObserver")
    }
}
