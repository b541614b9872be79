//! How messages reach the server: the seam between calls and transports.
//!
//! A call knows no transport, and a transport knows no calls: it carries messages, and says which one answers
//! which. What differs between revisions comes along as [`Rules`].

use std::pin::Pin;
use std::sync::Arc;

use turnbuckle_protocol::RequestId;

use crate::answer::Answer;
use crate::error::TransportError;
use crate::held::Held;
use crate::http::{Endpoint, HttpSse};
use crate::hub::Hub;
use crate::lifecycle::Rules;
use crate::lines;
use crate::message::HeaderList;
use crate::stdio::{self, Process};

/// A request ready to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Its id, always an integer of ours.
    pub(crate) id: RequestId,
    /// Its method, for errors and logs.
    pub(crate) method: &'static str,
    /// The whole message on one line, without a line end.
    pub(crate) body: Vec<u8>,
    /// What goes along on HTTP; other transports have no place for it.
    pub(crate) headers: HeaderList,
    /// How the revision wants it carried.
    pub(crate) rules: Arc<Rules>,
    /// Takes down how long somebody gets credentials for it, where that can be.
    pub(crate) held: Option<Arc<Held>>,
}

/// A connection to a server, whatever it is made of.
#[derive(Debug)]
pub(crate) enum Transport {
    /// Lines over a pair of byte streams.
    Lines(lines::Connection),
    /// Streamable HTTP.
    Http(Endpoint),
    /// HTTP+SSE of 2024-11-05.
    HttpSse(HttpSse),
    /// Lines over the standard streams of a child process.
    Child(stdio::Running),
}

impl Transport {
    /// Sends a request and waits for its answer; dropping the future cancels it. What is sent is taken out of it.
    ///
    /// On the heap, for every request would be as large as one of the largest kind.
    pub(crate) fn request<'r>(
        &'r self,
        outgoing: &'r mut Outgoing,
        hub: &'r Arc<Hub>,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, TransportError>> + Send + 'r>> {
        match self {
            Self::Lines(connection) => Box::pin(connection.request(outgoing, hub)),
            Self::Child(running) => Box::pin(running.request(outgoing, hub)),
            Self::Http(endpoint) => Box::pin(endpoint.request(outgoing, hub)),
            Self::HttpSse(server) => Box::pin(server.request(outgoing, hub)),
        }
    }

    /// Sends a notification, or the answer to a request of the server's.
    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        headers: HeaderList,
        hub: &Arc<Hub>,
    ) -> Result<(), TransportError> {
        match self {
            Self::Lines(connection) => connection.send(message, hub).await,
            Self::Child(running) => running.send(message, hub).await,
            Self::Http(endpoint) => endpoint.send(message, headers, hub).await,
            Self::HttpSse(server) => server.send(message, headers, hub).await,
        }
    }

    /// Is told what was agreed upon, and opens whatever else the revision has.
    pub(crate) async fn agreed(&self, rules: &Arc<Rules>, hub: &Arc<Hub>) {
        match self {
            Self::Http(endpoint) => endpoint.agreed(rules, hub).await,
            Self::Lines(_) | Self::Child(_) | Self::HttpSse(_) => {}
        }
    }

    /// Says whether the transport is the kind that tells eras apart by HTTP status.
    pub(crate) fn is_http(&self) -> bool {
        match self {
            Self::Http(_) => true,
            Self::Lines(_) | Self::Child(_) | Self::HttpSse(_) => false,
        }
    }

    /// Says whether a request may get through although the last one lost its connection.
    pub(crate) fn comes_back(&self) -> bool {
        match self {
            Self::Lines(_) | Self::HttpSse(_) => false,
            Self::Child(running) => running.comes_back(),
            Self::Http(_) => true,
        }
    }

    /// Returns what takes down how long somebody gets credentials for a request, if anybody does.
    pub(crate) fn held(&self) -> Option<Arc<Held>> {
        match self {
            Self::Lines(_) | Self::Child(_) => None,
            Self::Http(endpoint) => endpoint.held(),
            Self::HttpSse(server) => server.held(),
        }
    }

    /// Returns the child process at the other end.
    pub(crate) fn process(&self) -> Option<Process> {
        match self {
            Self::Child(running) => running.process(),
            Self::Lines(_) | Self::Http(_) | Self::HttpSse(_) => None,
        }
    }

    /// Ends the connection in an orderly way.
    pub(crate) async fn close(&self, hub: &Hub) {
        match self {
            Self::Lines(connection) => {
                hub.end(TransportError::ClosedByUs);
                connection.close().await;
            }
            Self::Child(running) => {
                hub.end(TransportError::ClosedByUs);
                running.close().await;
            }
            Self::Http(endpoint) => endpoint.close(hub).await,
            Self::HttpSse(server) => server.close(hub).await,
        }
    }
}
