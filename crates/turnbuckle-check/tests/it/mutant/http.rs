//! The layer between the checker and an HTTP server.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};
use turnbuckle_check::ServerTarget;
use turnbuckle_protocol::codec::sse::{ParsedEvent, SseDecoder, SseLimits};
use turnbuckle_server::{
    Server,
    http::{Http, HttpService, HttpSse, Listener, MemoryConnector, ResponseBody, memory},
};

use super::{Change, OutgoingResponse};
use crate::good;

pub(super) fn target(server: Server, change: Change) -> ServerTarget {
    good::target_via(serve(Http::new(server), change))
}

pub(super) fn sse_target(server: Server, change: Change) -> ServerTarget {
    good::sse_target_via(serve(Http::new(server).http_sse(HttpSse::new()), change))
}

pub(super) fn protected_target(server: Server, change: Change) -> ServerTarget {
    let http = Http::new(server).authenticator(good::protected::authenticator());
    good::protected::target_via(serve(http, change), good::protected::CREDENTIALS)
}

fn serve(http: Http, change: Change) -> MemoryConnector {
    let (connector, mut listener) = memory();
    let service = http.into_service();
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                return;
            };
            let (service, change) = (service.clone(), change.clone());
            let service_function = service_fn(move |request| {
                let (service, change) = (service.clone(), change.clone());
                async move { Ok::<_, Infallible>(handle(service, change, request).await) }
            });
            tokio::spawn(
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_function),
            );
        }
    });
    connector
}

async fn handle(
    mut service: HttpService,
    change: Change,
    request: Request<Incoming>,
) -> Response<ChangedBody> {
    let (parts, body) = request.into_parts();
    let request_head = parts.clone();
    let mut body = body
        .collect()
        .await
        .map(|body| body.to_bytes().to_vec())
        .unwrap_or_default();
    let request_message: Option<Value> = serde_json::from_slice(&body).ok();
    if let Some((method, by)) = change.late {
        let is_delayed = request_message
            .as_ref()
            .is_some_and(|request_message| request_message["method"] == method);
        if is_delayed || parts.method == method {
            tokio::time::sleep(by).await;
        }
    }
    if let Some(message) = request_message.clone() {
        let incoming = change.apply_to_received(message, &[]);
        if let Some(handle) = incoming.response {
            return json(handle.to_string());
        }
        if request_message.as_ref() != Some(&incoming.message) {
            body = incoming.message.to_string().into_bytes();
        }
    }
    let mut request = Request::from_parts(parts, body);
    if let Some(alter) = &change.request {
        alter(&mut request);
    }
    let request = request.map(|body| Full::new(Bytes::from(body)));
    let Ok(response) = tower_service::Service::call(&mut service, request).await;
    let (head, body) = response.into_parts();
    let kind = head
        .headers
        .get("content-type")
        .and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        let mut outgoing_response = OutgoingResponse { head, body: None };
        respond(&change, &request_head, &mut outgoing_response);
        let body = match outgoing_response.body {
            Some(body) => ChangedBody::whole(body),
            None => ChangedBody::stream(body, change, request_head, request_message),
        };
        return Response::from_parts(outgoing_response.head, body);
    }
    let mut body = body
        .collect()
        .await
        .map(|body| body.to_bytes().to_vec())
        .unwrap_or_default();
    if let Ok(message) = serde_json::from_slice::<Value>(&body)
        && message.get("jsonrpc").is_some()
    {
        body = change
            .apply_to_sent(message, request_message)
            .join("\n")
            .into_bytes();
    }
    let mut outgoing_response = OutgoingResponse {
        head,
        body: Some(body),
    };
    outgoing_response.head.headers.remove("content-length");
    respond(&change, &request_head, &mut outgoing_response);
    let body = ChangedBody::whole(outgoing_response.body.unwrap_or_default());
    Response::from_parts(outgoing_response.head, body)
}

fn respond(change: &Change, request_message: &Parts, outgoing_response: &mut OutgoingResponse) {
    if let Some(alter) = &change.response {
        alter(request_message, outgoing_response);
    }
}

fn json(body: String) -> Response<ChangedBody> {
    let mut response = Response::new(ChangedBody::whole(body.into_bytes()));
    let kind = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", kind);
    response
}

/// A body of changed messages.
struct ChangedBody(mpsc::Receiver<Bytes>);

impl ChangedBody {
    fn whole(body: Vec<u8>) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        if !body.is_empty() {
            sender
                .try_send(body.into())
                .expect("the channel holds one chunk");
        }
        Self(receiver)
    }

    /// Changes each event in transit; drops the server's body when the receiver is closed.
    fn stream(
        mut body: ResponseBody,
        change: Change,
        head: Parts,
        request_message: Option<Value>,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut copies = change.copied.as_ref().map(|(_, copies)| copies.subscribe());
            let mut decoder = SseDecoder::new(SseLimits {
                line: 1 << 24,
                event: 1 << 24,
            });
            loop {
                let frame = tokio::select! {
                    frame = body.frame() => frame,
                    Some(copy) = copy(&mut copies), if head.method == "GET" => {
                        let _ = sender.send(copy.into()).await;
                        continue;
                    }
                    () = sender.closed() => return,
                };
                let Some(Ok(frame)) = frame else {
                    if change.lingers {
                        sender.closed().await;
                    }
                    return;
                };
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                let mut rest: &[u8] = &data;
                let mut any = false;
                while let Ok(Some(event)) = decoder.next(&mut rest) {
                    any = true;
                    let text = encode(&event, &change, &head, request_message.as_ref());
                    if sender.send(text.into()).await.is_err() {
                        return;
                    }
                }
                // Forward comments, which keep the connection alive.
                if !any && data.starts_with(b":") && sender.send(data).await.is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }
}

async fn copy(copies: &mut Option<broadcast::Receiver<String>>) -> Option<String> {
    copies.as_mut()?.recv().await.ok()
}

fn encode(
    event: &ParsedEvent,
    change: &Change,
    head: &Parts,
    request_message: Option<&Value>,
) -> String {
    let mut lines = String::new();
    if !event.last_event_id.is_empty() {
        lines = format!("id: {}\n", event.last_event_id);
    }
    if event.name != "message" {
        lines = format!("{lines}event: {}\n", event.name);
    }
    let message = serde_json::from_str::<Value>(&event.data);
    let texts = match &message {
        Ok(message) => {
            let request_message = request_message.filter(|_| message.get("method").is_none());
            change.apply_to_sent(message.clone(), request_message.cloned())
        }
        Err(_) => vec![event.data.clone()],
    };
    let events = texts.iter().map(|text| format!("{lines}data: {text}\n\n"));
    let mut events: String = events.collect();
    if let Some(alter) = &change.events {
        alter(head, &mut events);
    }
    if let (Some((method, copies)), Ok(message)) = (&change.copied, message)
        && head.method == "POST"
        && message["method"] == *method
    {
        let _ = copies.send(format!("data: {message}\n\n"));
    }
    events
}

impl hyper::body::Body for ChangedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
