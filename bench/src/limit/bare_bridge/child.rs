//! Passes the body of every request to one child process, with an id of its own, and the line that answers it back.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

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
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::{ChildStdin, ChildStdout, Command},
    sync::oneshot,
};

use crate::{
    Failure,
    limit::bare::{is_initialize, status},
};

/// The members of a message that a bridge needs.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// A child process, and the requests that it has not answered.
struct Child {
    input: tokio::sync::Mutex<ChildStdin>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Bytes>>>,
    next_id: AtomicU64,
}

/// Serves every connection until the process ends.
pub(super) async fn serve(listen: SocketAddr, tools: Option<usize>) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["bare", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(tools) = tools {
        command.args(["--tools", &tools.to_string()]);
    }
    let mut process = command.spawn()?;
    let input = process.stdin.take().expect("stdin was requested");
    let output = process.stdout.take().expect("stdout was requested");
    let child = Arc::new(Child {
        input: tokio::sync::Mutex::new(input),
        waiting: Mutex::default(),
        next_id: AtomicU64::new(0),
    });
    tokio::spawn(Arc::clone(&child).read(output));
    let listener = TcpListener::bind(listen).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let child = Arc::clone(&child);
        let service = service_fn(move |request| Arc::clone(&child).respond(request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

impl Child {
    async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let has_session = request.headers().contains_key("mcp-protocol-version");
        let Ok(body) = request.into_body().collect().await else {
            return Ok(status(StatusCode::BAD_REQUEST));
        };
        let body = body.to_bytes();
        Ok(match self.call(&body).await {
            Ok(Some(answer)) => response(answer, !has_session && is_initialize(&body)),
            Ok(None) => status(StatusCode::ACCEPTED),
            Err(_) => status(StatusCode::BAD_GATEWAY),
        })
    }

    /// Returns the answer to a message; `None` for a notification.
    async fn call(&self, message: &[u8]) -> Result<Option<Bytes>, Failure> {
        let Some(id) = serde_json::from_slice::<Envelope<'_>>(message)?.id else {
            self.write([message, b"\n"].concat()).await?;
            return Ok(None);
        };
        let own = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(own, sender);
        let mut line = with_id(message, id.get(), own.to_string().as_bytes());
        line.push(b'\n');
        self.write(line).await?;
        Ok(Some(
            with_id(&answer.await?, &own.to_string(), id.get().as_bytes()).into(),
        ))
    }

    async fn write(&self, line: Vec<u8>) -> Result<(), Failure> {
        Ok(self.input.lock().await.write_all(&line).await?)
    }

    /// Delivers every line to the request with its id.
    async fn read(self: Arc<Self>, output: ChildStdout) -> Result<(), Failure> {
        let mut output = BufReader::with_capacity(64 * 1024, output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).await? > 0 {
            line.pop();
            let id = serde_json::from_slice::<Envelope<'_>>(&line)?.id;
            let id = id.and_then(|id| id.get().parse::<u64>().ok());
            let waiting = id.and_then(|id| self.waiting().remove(&id));
            if let Some(waiting) = waiting {
                let _ = waiting.send(std::mem::take(&mut line).into());
            }
            line.clear();
        }
        Ok(())
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Bytes>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn response(answer: Bytes, opens_session: bool) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if opens_session {
        // Nothing is stored; the id exists so that calls carry the header of a session call.
        let id = HeaderValue::from_static("0123456789abcdef0123456789abcdef");
        headers.insert("mcp-session-id", id);
    }
    response
}

/// Replaces the id of a message; `"id":` is not part of a string before it in the measured messages.
fn with_id(message: &[u8], old: &str, new: &[u8]) -> Vec<u8> {
    let Some(name) = memchr::memmem::find(message, b"\"id\":") else {
        return message.to_vec();
    };
    let (before, after) = message.split_at(name + 5);
    let value = memchr::memmem::find(after, old.as_bytes()).unwrap_or(0);
    [before, new, &after[value + old.len()..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_replaced_and_nothing_else() {
        let message = br#"{"jsonrpc":"2.0","id": 7,"params":{"a":7}}"#;

        let replaced = with_id(message, "7", b"1234");

        assert_eq!(
            String::from_utf8(replaced).unwrap(),
            r#"{"jsonrpc":"2.0","id":1234,"params":{"a":7}}"#
        );
    }
}
