//! Closing a connection whose client is still sending.
//!
//! A socket that is closed while there is something to read resets the connection: the client gets an error for what
//! it writes, and often never sees the answer that it was sent. So the connection says that nothing more will come,
//! reads on for a while, and is closed then (RFC 9112, section 9.6).

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

use super::{activity::Activity, endpoint::Endpoint};

/// How many bytes are read for nothing.
const MOST: usize = 64 * 1024 * 1024;
/// How long they are read.
const LONGEST: Duration = Duration::from_secs(30);
/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(5);
/// How many bytes are read at once.
const PIECE: usize = 16 * 1024;

/// A connection that, where its [activity](Activity) says so, reads on after it was shut down.
pub(super) struct Linger<I> {
    io: I,
    endpoint: Arc<Endpoint>,
    activity: Arc<Activity>,
    state: State,
}

enum State {
    Open,
    Reading(Box<Rest>),
    Closed,
}

/// What is still read.
struct Rest {
    left: usize,
    end: Pin<Box<Sleep>>,
    silence: Pin<Box<Sleep>>,
    piece: [u8; PIECE],
}

impl<I> Linger<I> {
    pub(super) fn new(io: I, endpoint: Arc<Endpoint>, activity: Arc<Activity>) -> Self {
        Self {
            io,
            endpoint,
            activity,
            state: State::Open,
        }
    }
}

impl Rest {
    fn new() -> Box<Self> {
        Box::new(Self {
            left: MOST,
            end: Box::pin(sleep(LONGEST)),
            silence: Box::pin(sleep(SILENCE)),
            piece: [0; PIECE],
        })
    }

    /// Reads until the client ends, or has had its chance.
    fn poll(&mut self, mut io: Pin<&mut impl AsyncRead>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut buffer = ReadBuf::new(&mut self.piece);
            match io.as_mut().poll_read(cx, &mut buffer) {
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => {
                    let read = buffer.filled().len();
                    if read == 0 || read >= self.left {
                        return Poll::Ready(());
                    }
                    self.left -= read;
                    self.silence.as_mut().reset(Instant::now() + SILENCE);
                }
                Poll::Pending => break,
            }
        }
        if self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        self.silence.as_mut().poll(cx)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Linger<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Linger<I> {
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
                State::Open => {
                    ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
                    this.state = State::Closed;
                    if this.activity.lingers() {
                        // From now on it may be closed to make room for another.
                        this.activity.wait(Instant::now());
                        this.state = State::Reading(Rest::new());
                    }
                }
                State::Reading(rest) => {
                    if !this.endpoint.is_closed() {
                        ready!(rest.poll(Pin::new(&mut this.io), cx));
                    }
                    this.state = State::Closed;
                }
                State::Closed => return Poll::Ready(Ok(())),
            }
        }
    }
}
