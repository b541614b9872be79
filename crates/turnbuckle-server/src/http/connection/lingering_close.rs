//! Lingering close of connections to clients that are still sending.
//!
//! Closing a socket with unread input resets the connection: the client gets a write error and often never sees the
//! response. So the write side is shut down first, input is read and discarded for a while, and then the connection is
//! closed (RFC 9112, section 9.6).

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use crate::http::{connection::ConnectionActivity, endpoint::Endpoint};

/// Maximum number of bytes that are discarded.
const MAX_LINGER_BYTES: usize = 64 * 1024 * 1024;
/// Maximum duration of the lingering close.
const MAX_LINGER_TIME: Duration = Duration::from_secs(30);
/// Maximum time without input.
const LINGER_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Size of the read buffer.
const READ_CHUNK_BYTES: usize = 16 * 1024;

/// A connection that discards input after shutdown if its [activity](ConnectionActivity) requests it.
pub(crate) struct LingeringClose<I> {
    io: I,
    endpoint: Arc<Endpoint>,
    activity: Arc<ConnectionActivity>,
    state: LingerState,
}

enum LingerState {
    Open,
    Reading(Box<LingerRead>),
    Closed,
}

/// The state while input is discarded.
struct LingerRead {
    remaining: usize,
    deadline: Pin<Box<Sleep>>,
    idle_timeout: Pin<Box<Sleep>>,
    chunk: [u8; READ_CHUNK_BYTES],
}

impl<I> LingeringClose<I> {
    pub(crate) fn new(io: I, endpoint: Arc<Endpoint>, activity: Arc<ConnectionActivity>) -> Self {
        Self {
            io,
            endpoint,
            activity,
            state: LingerState::Open,
        }
    }
}

impl LingerRead {
    fn new() -> Box<Self> {
        Box::new(Self {
            remaining: MAX_LINGER_BYTES,
            deadline: Box::pin(sleep(MAX_LINGER_TIME)),
            idle_timeout: Box::pin(sleep(LINGER_IDLE_TIMEOUT)),
            chunk: [0; READ_CHUNK_BYTES],
        })
    }

    /// Discards input until the client closes its side or a limit is reached.
    fn poll(&mut self, mut io: Pin<&mut impl AsyncRead>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut buffer = ReadBuf::new(&mut self.chunk);
            match io.as_mut().poll_read(cx, &mut buffer) {
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => {
                    let read = buffer.filled().len();
                    if read == 0 || read >= self.remaining {
                        return Poll::Ready(());
                    }
                    self.remaining -= read;
                    self.idle_timeout
                        .as_mut()
                        .reset(Instant::now() + LINGER_IDLE_TIMEOUT);
                }
                Poll::Pending => break,
            }
        }
        if self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        self.idle_timeout.as_mut().poll(cx)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for LingeringClose<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringClose<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                LingerState::Open => {
                    ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
                    this.state = LingerState::Closed;
                    if this.activity.should_linger() {
                        // From now on the accept loop may close it in favor of a new connection.
                        this.activity.mark_idle(Instant::now());
                        this.state = LingerState::Reading(LingerRead::new());
                    }
                }
                LingerState::Reading(rest) => {
                    if !this.endpoint.is_closed() {
                        ready!(rest.poll(Pin::new(&mut this.io), cx));
                    }
                    this.state = LingerState::Closed;
                }
                LingerState::Closed => return Poll::Ready(Ok(())),
            }
        }
    }
}
