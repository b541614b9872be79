//! The HTTP limit: every caller has its own keep-alive connection, and hyper does the rest.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::call;
use crate::{
    Failure,
    client::{Plan, Stopwatch},
    message::{self, Era},
};

/// Makes the planned calls, and returns their cost.
#[tokio::main]
pub(crate) async fn run(plan: &Plan, url: &str) -> Result<String, Failure> {
    let server = Arc::new(Server::new(plan, url).await?);
    let mut callers = Vec::new();
    for calls in plan.shares() {
        callers.push((calls, server.connect().await?));
    }
    let time = Stopwatch::start()?;
    let callers: Vec<_> = callers
        .into_iter()
        .map(|(calls, connection)| {
            let server = Arc::clone(&server);
            tokio::spawn(async move { server.calls(calls, connection).await })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    time.report(plan.calls)
}

type Connection = SendRequest<Full<Bytes>>;

/// The server to call, and the parts that are the same in every call.
struct Server {
    uri: Uri,
    host: HeaderValue,
    era: Era,
    session: Option<HeaderValue>,
    message: String,
}

impl Server {
    async fn new(plan: &Plan, url: &str) -> Result<Server, Failure> {
        let uri: Uri = url.parse()?;
        let host = uri.authority().ok_or("a URL without a host")?;
        let mut server = Server {
            host: HeaderValue::from_str(host.as_str())?,
            uri,
            era: plan.era,
            session: None,
            message: plan.message.clone(),
        };
        if plan.era == Era::Legacy {
            let mut connection = server.connect().await?;
            let opened = server.post(&mut connection, &[], message::INITIALIZE);
            server.session = opened.await?.headers().get("mcp-session-id").cloned();
            let mut connection = server.connect().await?;
            let headers = server.headers();
            server
                .post(&mut connection, &headers, message::INITIALIZED)
                .await?;
        }
        Ok(server)
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let host = self.uri.authority().ok_or("a URL without a host")?;
        let stream = TcpStream::connect(host.as_str()).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn calls(&self, calls: u64, mut connection: Connection) -> Result<(), Failure> {
        let headers = self.headers();
        for id in 0..calls {
            let body = call::write(self.era, id, &self.message)?;
            let response = self.post(&mut connection, &headers, body).await?;
            let body = response.into_body().collect().await?.to_bytes();
            let (named, text) = call::read(&body)?;
            if named != id || *text != self.message {
                return Err(format!("wrong response to call {id}: {text:.300}").into());
            }
        }
        Ok(())
    }

    async fn post(
        &self,
        connection: &mut Connection,
        headers: &[(HeaderName, HeaderValue)],
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::post(self.uri.path()).body(Full::new(body.into()))?;
        let all = request.headers_mut();
        all.insert(HOST, self.host.clone());
        all.insert(ACCEPT, JSON_OR_SSE);
        all.insert(CONTENT_TYPE, JSON);
        for (name, value) in headers {
            all.insert(name.clone(), value.clone());
        }
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(format!("status {}", response.status()).into())
        }
    }

    /// The headers that MCP requires on every call.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        match self.era {
            Era::Legacy => {
                let session = self.session.iter().cloned();
                let session = session.map(|id| (SESSION, id));
                [(VERSION, HeaderValue::from_static("2025-11-25"))]
                    .into_iter()
                    .chain(session)
                    .collect()
            }
            Era::Modern => vec![
                (VERSION, HeaderValue::from_static("2026-07-28")),
                (METHOD, HeaderValue::from_static("tools/call")),
                (NAME, HeaderValue::from_static("echo")),
            ],
        }
    }
}

const JSON_OR_SSE: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
