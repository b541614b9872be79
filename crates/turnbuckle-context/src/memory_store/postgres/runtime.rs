//! The thread on which connections run.
//!
//! Callers of a store wait on threads that may block, or poll its futures in any runtime. Connections have a runtime of their own, so
//! that they serve all of them, and a write runs to its end when its caller is gone.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::JoinHandle,
};

use crate::memory_store::MemoryStoreError;

/// A thread with a runtime, which ends when the value is dropped.
#[derive(Debug)]
pub(super) struct ConnectionRuntime {
    handle: Handle,
    _stop: oneshot::Sender<()>,
}

impl ConnectionRuntime {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(move || runtime.block_on(stopped))?;
        Ok(Self {
            handle,
            _stop: stop,
        })
    }

    /// Starts work, which continues if the result is dropped.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, MemoryStoreError>> + Send + 'static,
    ) -> Running<T> {
        Running {
            task: self.handle.spawn(work),
            stops_on_drop: false,
        }
    }

    /// Returns the runtime, for work that starts itself.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// Work on the thread of the connections.
pub(super) struct Running<T> {
    task: JoinHandle<Result<T, MemoryStoreError>>,
    stops_on_drop: bool,
}

impl<T> Running<T> {
    /// Stops the work if this is dropped.
    pub(super) fn stop_on_drop(mut self) -> Self {
        self.stops_on_drop = true;
        self
    }
}

impl<T> Future for Running<T> {
    type Output = Result<T, MemoryStoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let done = Pin::new(&mut self.task).poll(cx);
        done.map(|done| match done {
            Ok(outcome) => outcome,
            Err(error) if error.is_cancelled() => Err(MemoryStoreError::Cancelled),
            Err(error) => Err(MemoryStoreError::Other(error.into())),
        })
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if self.stops_on_drop {
            self.task.abort();
        }
    }
}
