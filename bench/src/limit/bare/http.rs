//! The HTTP limit: hyper, one body in, one body out, nothing in between.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::respond::{Reply, is_initialize, respond as reply_to};
use crate::Failure;

/// Serves every connection until the process ends.
pub(crate) async fn serve(listen: SocketAddr) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond)),
        );
    }
}

/// One chunk of known length, or events.
pub(crate) type Sent = Either<Full<Bytes>, Events>;

async fn respond(request: Request<Incoming>) -> Result<Response<Sent>, Infallible> {
    let has_session = request.headers().contains_key("mcp-protocol-version");
    let Ok(body) = request.into_body().collect().await else {
        return Ok(status(StatusCode::BAD_REQUEST).map(Either::Left));
    };
    Ok(answered(&body.to_bytes(), has_session))
}

/// Responds to one message.
pub(crate) fn answered(body: &[u8], has_session: bool) -> Response<Sent> {
    let bytes = match reply_to(body) {
        Some(Reply::One(bytes)) => bytes,
        Some(Reply::Steps(steps)) => return events(steps.write("data: ", "\n\n")),
        None => return status(StatusCode::ACCEPTED).map(Either::Left),
    };
    let mut response = Response::new(Either::Left(Full::from(bytes)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if !has_session && is_initialize(body) {
        // Nothing is stored; the id exists so that calls carry the header of a session call.
        let id = HeaderValue::from_static("0123456789abcdef0123456789abcdef");
        response.headers_mut().insert("mcp-session-id", id);
    }
    response
}

fn events(events: Vec<u8>) -> Response<Sent> {
    let mut response = Response::new(Either::Right(Events(Some(events.into()))));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// Events that are ready at once. Their length is not sent, since the length of a stream is unknown.
pub(crate) struct Events(Option<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let events = self.get_mut().0.take();
        Poll::Ready(events.map(|events| Ok(Frame::data(events))))
    }
}

pub(crate) fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
