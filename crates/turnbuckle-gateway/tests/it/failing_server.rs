//! Upstream servers of both eras that follow a script, message by message.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use turnbuckle_auth::{CredentialProvider, client::TokenExchange};
use turnbuckle_client::{LifecycleMode, Target, http::HttpTarget, ndjson::NdjsonClient};
use turnbuckle_gateway::{Upstream, UpstreamCaller};

/// The URL of scripted servers on HTTP.
pub(crate) const HTTP_URL: &str = "http://secret.example/mcp";

/// What a scripted server does with a message.
pub(crate) enum Step {
    /// Responds as a server without faults.
    Default,
    /// Writes these messages.
    Messages(Vec<Value>),
    /// Writes this text.
    Text(String),
    /// Does nothing.
    Silence,
    /// Closes the connection.
    Close,
    /// Responds with this status and header, over HTTP.
    Status(u16, &'static str),
}

/// The script: gets each message, and the number of its connection.
pub(crate) trait Script: Fn(&Value, usize) -> Step + Send + Sync + 'static {}

impl<F: Fn(&Value, usize) -> Step + Send + Sync + 'static> Script for F {}

/// Returns whether a token gives access to a method; gets the method and the value of `Authorization`.
pub(crate) trait TokenCheck: Fn(&str, &str) -> bool + Send + Sync + 'static {}

impl<F: Fn(&str, &str) -> bool + Send + Sync + 'static> TokenCheck for F {}

/// A server that follows a script, and what it received.
#[derive(Clone)]
pub(crate) struct Scripted {
    mode: LifecycleMode,
    script: Arc<dyn Script>,
    connections: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<Value>>>,
    /// The lines and headers of all requests over HTTP.
    heads: Arc<Mutex<Vec<String>>>,
    token_check: Arc<dyn TokenCheck>,
}

impl Scripted {
    pub(crate) fn new(mode: LifecycleMode, script: impl Script) -> Self {
        Self {
            mode,
            script: Arc::new(script),
            connections: Arc::default(),
            received: Arc::default(),
            heads: Arc::default(),
            token_check: Arc::new(|_: &str, _: &str| true),
        }
    }

    /// Responds with 401 to requests over HTTP with a token that is not accepted.
    pub(crate) fn token_check(mut self, check: impl TokenCheck) -> Self {
        self.token_check = Arc::new(check);
        self
    }

    /// Returns the server as an upstream server on byte streams.
    pub(crate) fn upstream(&self, name: &str) -> Upstream {
        let server = self.clone();
        let target = move || {
            let (near, far) = tokio::io::duplex(64 * 1024);
            let number = server.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(server.clone().serve_stream(far, number));
            let (reader, writer) = tokio::io::split(near);
            Target::from(NdjsonClient::new(reader, writer))
        };
        Upstream::new(name, target).lifecycle_mode(self.mode)
    }

    /// Returns the server as an upstream server on HTTP.
    pub(crate) fn http_upstream(&self, name: &str) -> Upstream {
        let server = self.clone();
        let target = move || Target::from(server.http_target());
        Upstream::new(name, target).lifecycle_mode(self.mode)
    }

    /// Returns the server as an upstream server on HTTP, which is used with the credentials of each caller.
    pub(crate) fn exchanging_upstream(&self, name: &str, exchange: TokenExchange) -> Upstream {
        self.upstream_of_callers(name, move |caller| {
            let owner = caller.clone();
            let newest = move || owner.newest_token().map(|token| token.secret().clone());
            exchange.caller(Arc::clone(caller.key()), newest)
        })
    }

    /// Returns the server as an upstream server on HTTP, with these credentials of each caller.
    pub(crate) fn upstream_of_callers<C: CredentialProvider>(
        &self,
        name: &str,
        credentials: impl Fn(&UpstreamCaller) -> C + Send + Sync + 'static,
    ) -> Upstream {
        let server = self.clone();
        let target = move |caller: &UpstreamCaller| {
            Target::from(server.http_target().authorization(credentials(caller)))
        };
        Upstream::per_caller(name, target).lifecycle_mode(self.mode)
    }

    fn http_target(&self) -> HttpTarget {
        let server = self.clone();
        let connector = move || {
            let (near, far) = tokio::io::duplex(64 * 1024);
            let number = server.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(server.clone().serve_http(far, number));
            std::future::ready(Ok(near))
        };
        HttpTarget::new(HTTP_URL).connector(connector)
    }

    /// Everything that was received over HTTP.
    pub(crate) fn everything(&self) -> String {
        let heads = self.heads.lock().unwrap().concat();
        format!("{heads}{:?}", self.received.lock().unwrap())
    }

    /// The `Authorization` headers of the requests over HTTP with this method.
    pub(crate) fn tokens(&self, method: &str) -> Vec<String> {
        let received = self.received.lock().unwrap();
        let heads = self.heads.lock().unwrap();
        let posts = heads.iter().filter(|head| head.starts_with("POST"));
        let of_method = posts.zip(&*received);
        let of_method = of_method.filter(|(_, message)| message["method"] == method);
        of_method.map(|(head, _)| authorization(head)).collect()
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The received messages with this method.
    pub(crate) fn received(&self, method: &str) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let matches = |message: &&Value| message["method"] == method;
        received.iter().filter(matches).cloned().collect()
    }

    /// The received calls of a tool.
    pub(crate) fn calls(&self, tool: &str) -> usize {
        let calls = self.received("tools/call");
        let of_tool = calls.iter().filter(|call| call["params"]["name"] == tool);
        of_tool.count()
    }

    async fn serve_stream(self, stream: tokio::io::DuplexStream, number: usize) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            self.received.lock().unwrap().push(message.clone());
            let text = match (self.script)(&message, number) {
                Step::Default => default_response(&message)
                    .as_ref()
                    .map_or(String::new(), line_of),
                Step::Messages(messages) => messages.iter().map(line_of).collect(),
                Step::Text(text) => text,
                Step::Silence | Step::Status(..) => String::new(),
                Step::Close => return,
            };
            if writer.write_all(text.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    async fn serve_http(self, stream: tokio::io::DuplexStream, number: usize) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = BufReader::new(reader);
        loop {
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).await.unwrap_or(0) == 0 {
                    return;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).await.is_err() {
                return;
            }
            self.heads.lock().unwrap().push(head.clone());
            if !head.starts_with("POST") {
                let refused = "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";
                let _ = writer.write_all(refused.as_bytes()).await;
                continue;
            }
            let message: Value = serde_json::from_slice(&body).unwrap();
            self.received.lock().unwrap().push(message.clone());
            let method = message["method"].as_str().unwrap_or_default();
            let step = if (self.token_check)(method, &authorization(&head)) {
                (self.script)(&message, number)
            } else {
                Step::Status(401, "WWW-Authenticate: Bearer\r\n")
            };
            let response = match step {
                Step::Default => match default_response(&message) {
                    Some(response) => http_response(200, "Mcp-Session-Id: s1\r\n", &response),
                    None => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
                },
                Step::Messages(messages) => http_response(200, "", &messages[0]),
                Step::Status(status, header) => {
                    format!("HTTP/1.1 {status} Status\r\n{header}Content-Length: 0\r\n\r\n")
                }
                Step::Text(text) => text,
                Step::Silence => std::future::pending().await,
                Step::Close => return,
            };
            if writer.write_all(response.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// The value of `Authorization`, or nothing.
fn authorization(head: &str) -> String {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let line = lines.find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    line.map_or(String::new(), |(_, value)| value.to_owned())
}

fn http_response(status: u16, headers: &str, message: &Value) -> String {
    let body = message.to_string();
    format!(
        "HTTP/1.1 {status} OK\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn line_of(message: &Value) -> String {
    format!("{message}\n")
}

/// The response to a request, with this result.
pub(crate) fn result(message: &Value, result: &Value) -> Value {
    let mut result = result.clone();
    result["resultType"] = "complete".into();
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
}

/// Returns whether a message calls a tool.
pub(crate) fn is_call(message: &Value, tool: &str) -> bool {
    message["method"] == "tools/call" && message["params"]["name"] == tool
}

/// The response of a server without faults.
fn default_response(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let info = json!({ "name": "scripted", "version": "1" });
    let capabilities = json!({
        "tools": {}, "logging": {}, "resources": { "subscribe": true },
    });
    let value = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info,
        }),
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete",
            "_meta": { "io.modelcontextprotocol/serverInfo": info },
        }),
        "tools/list" => json!({
            "tools": [{ "name": "x", "inputSchema": { "type": "object" } }],
            "resultType": "complete",
        }),
        "resources/list" => json!({ "resources": [], "resultType": "complete" }),
        "subscriptions/listen" => {
            let params = json!({ "notifications": message["params"]["notifications"],
                "_meta": { "io.modelcontextprotocol/subscriptionId": id } });
            let method = "notifications/subscriptions/acknowledged";
            return Some(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        }
        "tools/call" => json!({
            "content": [{ "type": "text", "text": "done" }], "resultType": "complete",
        }),
        _ => json!({ "resultType": "complete" }),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": value }))
}
