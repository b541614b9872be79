//! The HTTP limit: hyper, one body in, one body out, nothing in between.

use std::{convert::Infallible, net::SocketAddr};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use turnbuckle_bench::Failure;

use crate::answer::{answer, is_initialize};

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

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let has_session = request.headers().contains_key("mcp-protocol-version");
    let Ok(body) = request.into_body().collect().await else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    Ok(answered(&body.to_bytes(), has_session))
}

/// Answers one message.
pub(crate) fn answered(body: &[u8], has_session: bool) -> Response<Full<Bytes>> {
    let Some(bytes) = answer(body) else {
        return status(StatusCode::ACCEPTED);
    };
    let mut response = Response::new(Full::from(bytes));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if !has_session && is_initialize(body) {
        // Nothing is remembered; the id is there so that calls carry the header a session call has.
        let id = HeaderValue::from_static("0123456789abcdef0123456789abcdef");
        response.headers_mut().insert("mcp-session-id", id);
    }
    response
}

pub(crate) fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
