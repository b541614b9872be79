//! A child's standard output, which ends with the child.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    process::ChildStdout,
    sync::watch,
    time::sleep,
};

use super::{ending, process::Stage};

/// How long one may wait for more once the process is gone: what it wrote is in the pipe already.
const REST: Duration = Duration::from_millis(500);

/// What a child process writes to its standard output.
///
/// Ends soon after the process does, even if someone whom it started left its group and still holds the stream.
pub struct Output {
    stdout: ChildStdout,
    /// Resolves when nothing more is to be waited for; `None` from then on.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl Output {
    pub(super) fn new(stdout: ChildStdout, stage: watch::Receiver<Stage>) -> Self {
        let over = async {
            ending::reached(stage, |stage| !matches!(stage, Stage::Running)).await;
            sleep(REST).await;
        };
        Self {
            stdout,
            over: Some(Box::pin(over)),
        }
    }
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(outcome) = Pin::new(&mut self.stdout).poll_read(cx, buffer) {
            return Poll::Ready(outcome);
        }
        if let Some(over) = &mut self.over {
            ready!(over.as_mut().poll(cx));
            self.over = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}
