//! The limit of streams: hyper, one channel per open stream; a change is sent to each unmodified.
//!
//! GET opens a stream, `subscriptions/listen` one with an acknowledgement. `announce` notifies all of them that the tools changed.
//! Everything else is handled as without streams.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Either};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use super::http;
use crate::Failure;

/// Serves every connection until the process ends.
pub(crate) async fn serve(listen: SocketAddr) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let streams = Streams::default();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let streams = streams.clone();
        let service = service_fn(move |request| respond(request, streams.clone()));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

type Reply = Response<Either<Events, http::Sent>>;

async fn respond(request: Request<Incoming>, streams: Streams) -> Result<Reply, Infallible> {
    if request.method() == Method::GET {
        let events = streams.open(Stream::General, ": open\n\n".into());
        return Ok(event_stream(events));
    }
    let has_session = request.headers().contains_key("mcp-protocol-version");
    let Ok(body) = request.into_body().collect().await else {
        return Ok(http::status(StatusCode::BAD_REQUEST)
            .map(Either::Left)
            .map(Either::Right));
    };
    let body = body.to_bytes();
    let request: RequestHead<'_> = serde_json::from_slice(&body).unwrap_or_default();
    Ok(match (request.method, request.params.name, request.id) {
        ("subscriptions/listen", _, Some(id)) => {
            let stream = Stream::Listen(id.get().into());
            let acknowledgement = acknowledgement(id.get());
            event_stream(streams.open(stream, acknowledgement))
        }
        (_, name, _) => {
            if name == "announce" {
                streams.notify_all();
            }
            http::answered(&body, has_session).map(Either::Right)
        }
    })
}

fn event_stream(events: Events) -> Reply {
    let mut response = Response::new(Either::Left(events));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// The members of a message that determine what to do.
#[derive(Default, Deserialize)]
struct RequestHead<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(default)]
    name: &'a str,
}

/// All listeners.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<Vec<Listener>>>);

struct Listener {
    stream: Stream,
    sender: UnboundedSender<Bytes>,
}

enum Stream {
    /// The stream of a session.
    General,
    /// A subscription, with its id as received.
    Listen(Box<str>),
}

impl Streams {
    fn open(&self, stream: Stream, first: Bytes) -> Events {
        let (sender, receiver) = unbounded_channel();
        let _ = sender.send(first);
        self.lock().push(Listener { stream, sender });
        Events(receiver)
    }

    /// Notifies every listener that the tools changed, and drops those that are gone.
    fn notify_all(&self) {
        self.lock().retain(|listener| {
            let event = match &listener.stream {
                Stream::General => Bytes::from_static(TOOLS_CHANGED),
                Stream::Listen(id) => tools_changed(id),
            };
            listener.sender.send(event).is_ok()
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages of a channel, as a body.
struct Events(UnboundedReceiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.poll_recv(cx);
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

const TOOLS_CHANGED: &[u8] = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{}}\n\n";

fn tools_changed(id: &str) -> Bytes {
    let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{{\"_meta\":{meta}}}}}\n\n").into()
}

fn acknowledgement(id: &str) -> Bytes {
    let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"notifications\":{{\"toolsListChanged\":true}},\"_meta\":{meta}}}}}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listener_is_notified_with_its_subscription_id() {
        let streams = Streams::default();
        let mut general = streams.open(Stream::General, Bytes::new());
        let mut listening = streams.open(Stream::Listen("7".into()), acknowledgement("7"));
        drop(streams.open(Stream::General, Bytes::new()));

        streams.notify_all();

        let last = |events: &mut Events| {
            let _first = events.0.try_recv().unwrap();
            String::from_utf8(events.0.try_recv().unwrap().to_vec()).unwrap()
        };
        assert!(last(&mut general).contains("tools/list_changed"));
        assert!(last(&mut listening).contains(r#""io.modelcontextprotocol/subscriptionId":7"#));
        assert_eq!(streams.lock().len(), 2, "who is gone is forgotten");
    }
}
