//! Relayed calls, and the handler that receives raw messages.

mod http;
mod ndjson;

use std::{pin::Pin, sync::Arc};

use tokio::sync::mpsc;
use turnbuckle_client::{
    ClientBuilder, TransportError,
    relay::{RelayCallId, RelayHandler, ServerNotification, ServerRequest},
};
use turnbuckle_protocol::{
    RpcError,
    types::{ClientCapabilities, RootsCapability},
};

/// What the handler has received.
#[derive(Debug, PartialEq)]
enum Event {
    Request(String, String, Option<RelayCallId>),
    Notification(String, String, Option<RelayCallId>),
    /// The future of a request was dropped before it was ready.
    Dropped,
    Gap,
    End,
}

type Response = Result<String, RpcError>;

/// A handler that records everything, and gives all requests the same response; without one they stay open.
struct Recorder {
    events: mpsc::UnboundedSender<Event>,
    response: Option<Response>,
}

/// The recorded events, in order.
struct Events(mpsc::UnboundedReceiver<Event>);

impl Events {
    /// Waits for the next event.
    async fn next(&mut self) -> Event {
        self.0.recv().await.expect("the handler exists")
    }

    /// Returns the events so far.
    fn take(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

/// Adds a recording handler that declares roots.
fn recording(builder: ClientBuilder, response: Option<Response>) -> (ClientBuilder, Events) {
    let (events, received) = mpsc::unbounded_channel();
    let recorder = Arc::new(Recorder { events, response });
    let capabilities = ClientCapabilities::new().roots(RootsCapability::default());
    (builder.relay(recorder, capabilities), Events(received))
}

impl RelayHandler for Recorder {
    fn on_request(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Response> + Send>> {
        let ServerRequest {
            method,
            params,
            call,
        } = request;
        let _ = self.events.send(Event::Request(method, params, call));
        match self.response.clone() {
            Some(response) => Box::pin(std::future::ready(response)),
            None => {
                let guard = DropGuard(self.events.clone());
                Box::pin(async move {
                    let _guard = guard;
                    std::future::pending().await
                })
            }
        }
    }

    fn on_notification(&self, notification: ServerNotification<'_>) {
        let (method, params) = (notification.method.into(), notification.params.into());
        let event = Event::Notification(method, params, notification.call);
        let _ = self.events.send(event);
    }

    fn on_gap(&self) {
        let _ = self.events.send(Event::Gap);
    }

    fn on_end(&self, _: &TransportError) {
        let _ = self.events.send(Event::End);
    }
}

struct DropGuard(mpsc::UnboundedSender<Event>);

impl Drop for DropGuard {
    fn drop(&mut self) {
        let _ = self.0.send(Event::Dropped);
    }
}
