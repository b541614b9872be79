//! The limit of calls in flight: hyper with the three slow tools, and only a timer for each call.
//!
//! Its memory is the cost of a connection without MCP.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::CONTENT_TYPE,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::http::status;
use crate::Failure;

/// Serves HTTP/1.1 and HTTP/2 on one port until the process ends.
pub(crate) async fn serve(listen: SocketAddr) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(connection(stream));
    }
}

async fn connection(stream: TcpStream) -> Result<(), Failure> {
    // `PRI` opens HTTP/2 and `POST` a request of HTTP/1.1: the second letter distinguishes them.
    let mut start = [0; 2];
    while stream.peek(&mut start).await? == 1 {
        tokio::task::yield_now().await;
    }
    let (io, service) = (TokioIo::new(stream), service_fn(respond));
    if start == *b"PR" {
        http2::Builder::new(TokioExecutor::new())
            .serve_connection(io, service)
            .await?;
    } else {
        http1::Builder::new().serve_connection(io, service).await?;
    }
    Ok(())
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let Ok(body) = request.into_body().collect().await else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    let Ok(message) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    let Some(id) = message.get("id") else {
        return Ok(status(StatusCode::ACCEPTED));
    };
    let result = match message["method"].as_str() {
        Some("tools/call") => {
            json!({"content": [{"type": "text", "text": call(&message["params"]).await}]})
        }
        _ => json!({}),
    };
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let response = Response::builder().header(CONTENT_TYPE, "application/json");
    let response = response
        .header("mcp-session-id", session())
        .body(Full::from(body));
    Ok(response.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR)))
}

async fn call(params: &Value) -> String {
    let arguments = &params["arguments"];
    let duration = Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default());
    let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    match params["name"].as_str() {
        Some("wait") => {
            HELD.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(duration).await;
            HELD.fetch_sub(1, Ordering::Relaxed);
            text("tag")
        }
        Some("block") => {
            let slept = tokio::task::spawn_blocking(move || std::thread::sleep(duration)).await;
            slept.map_or_else(|error| error.to_string(), |()| text("tag"))
        }
        Some("held") => HELD.load(Ordering::Relaxed).to_string(),
        _ => text("message"),
    }
}

/// The number of `wait` calls that are running.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Returns a new session id; nothing is stored.
fn session() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{:032x}", NEXT.fetch_add(1, Ordering::Relaxed))
}
