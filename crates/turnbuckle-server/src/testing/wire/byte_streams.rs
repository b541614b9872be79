//! One message per line.

use std::io;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    task::JoinHandle,
};

use super::Trouble;
use crate::lines::Lines;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Two byte streams, and the server at their other end if it is ours.
pub(in crate::testing) struct ByteStreams {
    lines: tokio::io::Lines<BufReader<Reader>>,
    writer: Writer,
    serving: Option<JoinHandle<io::Result<()>>>,
}

impl ByteStreams {
    pub(in crate::testing) fn new(reader: Reader, writer: Writer) -> Self {
        Self {
            lines: BufReader::new(reader).lines(),
            writer,
            serving: None,
        }
    }

    /// Serves a server at the other end.
    pub(in crate::testing) fn to(lines: Lines) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (far_reader, far_writer) = tokio::io::split(far);
        let (reader, writer) = tokio::io::split(near);
        Self {
            serving: Some(tokio::spawn(lines.serve(far_reader, far_writer))),
            ..Self::new(Box::new(reader), Box::new(writer))
        }
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), Trouble> {
        let line = format!("{message}\n");
        let written = self.writer.write_all(line.as_bytes()).await;
        let written = match written {
            Ok(()) => self.writer.flush().await,
            failed => failed,
        };
        written.map_err(|error| format!("the server reads no more: {error}"))
    }

    pub(super) async fn receive(&mut self) -> Result<Option<Value>, Trouble> {
        let line = self.lines.next_line().await;
        let line = line.map_err(|error| format!("the connection broke: {error}"))?;
        line.map(|line| serde_json::from_str(&line))
            .transpose()
            .map_err(|error| format!("the server wrote a line that is not JSON: {error}"))
    }

    pub(super) async fn close(mut self) -> io::Result<()> {
        self.writer.shutdown().await?;
        // What is still to come must be read, or the server waits for us.
        while self.lines.next_line().await?.is_some() {}
        match self.serving {
            Some(serving) => serving.await.map_err(io::Error::other)?,
            None => Ok(()),
        }
    }
}
