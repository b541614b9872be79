//! The layer between a client and the mock server on HTTP.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Frame, Incoming},
    client,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{io::duplex, sync::mpsc};
use turnbuckle_check::MockServerAddress;

use super::{Change, OutgoingRequest, RunState};
use crate::clients::good;

/// The buffer size of each direction.
const BUFFER: usize = 256 * 1024;

pub(super) async fn run(address: MockServerAddress, change: Change) {
    let state = Arc::new(Mutex::new(RunState::default()));
    let url = address.url().to_owned();
    good::run_on_http(&url, move || {
        let (address, change, state) = (address.clone(), change.clone(), state.clone());
        async move {
            let (near, far) = duplex(BUFFER);
            let service_function = service_fn(move |request| {
                let forwarded = forward(address.clone(), change.clone(), state.clone(), request);
                async move { forwarded.await.map_err(io::Error::other) }
            });
            tokio::spawn(
                http1::Builder::new().serve_connection(TokioIo::new(far), service_function),
            );
            Ok(near)
        }
    })
    .await;
}

async fn forward(
    address: MockServerAddress,
    change: Change,
    state: Arc<Mutex<RunState>>,
    request: Request<Incoming>,
) -> Result<Response<ChangedBody>, Box<dyn std::error::Error + Send + Sync>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes().to_vec();
    let texts = match serde_json::from_slice(&body) {
        Ok(message) => change.apply_to_sent(message, &mut state.lock().unwrap()),
        Err(_) => vec![String::from_utf8(body)?],
    };
    let Some((own, others)) = texts.split_last() else {
        return Ok(status(202));
    };
    // The client gets the response to the last request.
    for text in others {
        let request = Request::from_parts(parts.clone(), text.clone().into_bytes());
        send(&address, request).await?.collect().await?;
    }
    let request = Request::from_parts(parts, own.clone().into_bytes());
    let (request, status_override, before) = {
        let mut outgoing_request = OutgoingRequest {
            request,
            response: None,
            before: None,
            state: &mut state.lock().unwrap(),
        };
        if let Some(alter) = &change.request {
            alter(&mut outgoing_request);
        }
        (
            outgoing_request.request,
            outgoing_request.response,
            outgoing_request.before,
        )
    };
    if let Some((method, path)) = before {
        let mut request = Request::new(Vec::new());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse()?;
        send(&address, request).await?.collect().await?;
    }
    if let Some(status_override) = status_override {
        return Ok(status(status_override));
    }
    let response = send(&address, request).await?;
    let (mut head, body) = response.into_parts();
    head.headers.remove("content-length");
    if let Some(alter) = &change.response {
        alter(&mut head);
    }
    let forwarded = ChangedBody::new(body, change);
    Ok(Response::from_parts(head, forwarded))
}

fn status(status: u16) -> Response<ChangedBody> {
    let (_, receiver) = mpsc::channel(1);
    let mut response = Response::new(ChangedBody(receiver));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

async fn send(
    address: &MockServerAddress,
    mut request: Request<Vec<u8>>,
) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
    request.headers_mut().remove("content-length");
    let stream = TokioIo::new(address.connect().await?);
    let (mut sender, connection) = client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection);
    let request = request.map(|body| Full::new(Bytes::from(body)));
    Ok(sender.send_request(request).await?)
}

/// A body in transit to the client.
struct ChangedBody(mpsc::Receiver<io::Result<Bytes>>);

impl ChangedBody {
    fn new(mut body: Incoming, change: Change) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let frame = tokio::select! {
                    frame = body.frame() => frame,
                    () = sender.closed() => return,
                };
                let piece = match frame {
                    None => return,
                    Some(Ok(frame)) => Ok(changed(&frame.into_data().unwrap_or_default(), &change)),
                    Some(Err(error)) => Err(io::Error::other(error)),
                };
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }
}

/// The mock server sends whole messages and events, so each chunk is changed separately.
fn changed(piece: &[u8], change: &Change) -> Bytes {
    let text = String::from_utf8_lossy(piece);
    let lines: Vec<_> = text
        .split('\n')
        .map(|line| match (line.strip_prefix("data: "), &change.lines) {
            (Some(data), _) => format!("data: {}", change.apply_to_received(data)),
            (None, Some(alter)) => alter(line),
            (None, None) => change.apply_to_received(line),
        })
        .collect();
    lines.join("\n").into()
}

impl hyper::body::Body for ChangedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
