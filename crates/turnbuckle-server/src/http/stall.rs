//! Giving up on a connection whose other side does not read.
//!
//! While a connection takes nothing, nobody asks the response for more: it cannot see for itself how long that
//! lasts. Here it is seen.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};
use turnbuckle_protocol::codec::pieces;

use super::activity::Activity;

/// A connection that fails when it takes nothing for too long.
pub(super) struct WriteStall<I> {
    io: I,
    activity: Arc<Activity>,
    patience: Duration,
    /// Runs while the connection takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Whether it is a write that waits: a flush that succeeds says nothing then.
    write_waits: bool,
}

impl<I> WriteStall<I> {
    pub(super) fn new(io: I, activity: Arc<Activity>, patience: Duration) -> Self {
        Self {
            io,
            activity,
            patience,
            stalled: None,
            write_waits: false,
        }
    }

    fn after_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.write_waits = written.is_pending();
        self.judge(cx, written)
    }

    fn after_flush(
        &mut self,
        cx: &mut Context<'_>,
        flushed: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if self.write_waits && flushed.is_ready() {
            return flushed;
        }
        self.judge(cx, flushed)
    }

    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.stalled.take().is_some() {
                self.activity.end_write_wait(Instant::now());
            }
            return outcome;
        }
        let stalled = self.stalled.get_or_insert_with(|| {
            self.activity.begin_write_wait();
            Box::pin(sleep(self.patience))
        });
        if stalled.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read",
        )))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WriteStall<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for WriteStall<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.after_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let io = Pin::new(&mut self.io);
        let written = match pieces::joined(slices, &mut [0; pieces::SMALL]) {
            Some(all) => io.poll_write(cx, all),
            None => io.poll_write_vectored(cx, slices),
        };
        self.after_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.after_flush(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.io).poll_shutdown(cx);
        self.after_flush(cx, shut)
    }
}
