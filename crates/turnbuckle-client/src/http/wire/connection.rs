//! A connection of whatever kind, as hyper wants to see it.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{self, Connected};
use turnbuckle_protocol::codec::pieces;

/// Bytes in both directions; one type for TCP, TLS and what a program brings itself.
pub(crate) struct Connection(Box<dyn Stream>);

trait Stream: Read + Write + Send + Unpin {}

impl<S: Read + Write + Send + Unpin> Stream for S {}

impl Connection {
    pub(super) fn new(stream: impl Read + Write + Send + Unpin + 'static) -> Self {
        Self(Box::new(stream))
    }
}

impl connect::Connection for Connection {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.0);
        match pieces::joined(parts, &mut [0; pieces::SMALL]) {
            Some(all) => stream.poll_write(cx, all),
            None => stream.poll_write_vectored(cx, parts),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}
