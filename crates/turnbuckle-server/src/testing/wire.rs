//! How messages of a peer travel.

mod byte_streams;
mod http;
mod http_sse;

use std::io;

use serde_json::Value;

pub(super) use byte_streams::ByteStreams;
pub(super) use http::HttpWire;
pub(super) use http_sse::HttpSseWire;

/// What is wrong with a transport, for the test that fails of it.
pub(super) type Trouble = String;

/// The client's end of a transport.
#[expect(clippy::large_enum_variant, reason = "a test has one of them")]
pub(super) enum Wire {
    Lines(ByteStreams),
    Http(HttpWire),
    HttpSse(HttpSseWire),
}

impl Wire {
    pub(super) async fn send(&mut self, message: &Value) -> Result<(), Trouble> {
        match self {
            Self::Lines(wire) => wire.send(message).await,
            Self::Http(wire) => wire.send(message).await,
            Self::HttpSse(wire) => wire.send(message).await,
        }
    }

    /// The next message; `None` if there will be no more. Dropping the future loses nothing.
    pub(super) async fn receive(&mut self) -> Result<Option<Value>, Trouble> {
        match self {
            Self::Lines(wire) => wire.receive().await,
            Self::Http(wire) => wire.receive().await,
            Self::HttpSse(wire) => Ok(wire.receive().await),
        }
    }

    /// Drops a request, where that is how requests are cancelled; says whether it is.
    pub(super) fn hang_up(&mut self, id: i64) -> bool {
        match self {
            Self::Http(wire) => wire.hang_up(id),
            Self::Lines(_) | Self::HttpSse(_) => false,
        }
    }

    /// Leaves in order.
    pub(super) async fn close(self) -> io::Result<()> {
        match self {
            Self::Lines(wire) => wire.close().await,
            Self::Http(wire) => {
                wire.close().await;
                Ok(())
            }
            Self::HttpSse(_) => Ok(()),
        }
    }
}
