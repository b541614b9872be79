//! A write timeout for clients that do not read.
//!
//! While a connection accepts no bytes, hyper does not poll the response body, so the body cannot measure how long that
//! lasts. The timeout is measured here instead.

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
use turnbuckle_protocol::codec::join_small;

use crate::http::connection::ConnectionActivity;

/// A connection that fails its writes when no bytes are accepted for too long.
pub(crate) struct WriteTimeout<I> {
    io: I,
    activity: Arc<ConnectionActivity>,
    timeout: Duration,
    /// Set while the connection accepts no bytes.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Set while a write is pending. A successful flush then does not mean progress.
    write_pending: bool,
}

impl<I> WriteTimeout<I> {
    pub(crate) fn new(io: I, activity: Arc<ConnectionActivity>, timeout: Duration) -> Self {
        Self {
            io,
            activity,
            timeout,
            deadline: None,
            write_pending: false,
        }
    }

    fn after_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.write_pending = written.is_pending();
        self.check(cx, written)
    }

    fn after_flush(
        &mut self,
        cx: &mut Context<'_>,
        flushed: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if self.write_pending && flushed.is_ready() {
            return flushed;
        }
        self.check(cx, flushed)
    }

    fn check<T>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.deadline.take().is_some() {
                self.activity.clear_write_blocked(Instant::now());
            }
            return outcome;
        }
        let deadline = self.deadline.get_or_insert_with(|| {
            self.activity.set_write_blocked();
            Box::pin(sleep(self.timeout))
        });
        if deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "write timeout: the client does not read",
        )))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WriteTimeout<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<I> {
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
        let written = match join_small::join_small(slices, &mut [0; join_small::MAX_JOINED_BYTES]) {
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
