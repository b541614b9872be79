//! Passes every request on to another HTTP server, on a connection for each connection.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

use crate::{Failure, limit::bare::status};

type Upstream = Arc<Mutex<SendRequest<Incoming>>>;

/// Serves every connection until the process ends.
pub(super) async fn serve(listen: SocketAddr, upstream: SocketAddr) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let upstream = connect(upstream).await?;
        let service = service_fn(move |request| forward(Arc::clone(&upstream), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn connect(address: SocketAddr) -> Result<Upstream, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(Arc::new(Mutex::new(sender)))
}

async fn forward(
    upstream: Upstream,
    request: Request<Incoming>,
) -> Result<Response<Either<Incoming, Full<Bytes>>>, Infallible> {
    // One request at a time comes on a connection, so the lock is free.
    let response = upstream.lock().await.send_request(request).await;
    Ok(match response {
        Ok(response) => response.map(Either::Left),
        Err(_) => status(StatusCode::BAD_GATEWAY).map(Either::Right),
    })
}
