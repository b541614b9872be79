//! A small client for the self-checks of the examples (`--check`).
//!
//! It connects to a server in memory, prints every message, and responds to client requests and input requests. Programs
//! use `turnbuckle::client` instead.
#![allow(dead_code, reason = "each example uses the part that it needs")]
#![expect(clippy::print_stdout, reason = "the examples show what they do")]

use std::{collections::VecDeque, error::Error};

use serde_json::{Map, Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use turnbuckle::Server;

pub(crate) type CheckResult<T = ()> = Result<T, Box<dyn Error>>;

/// Returns whether the example was started with `--check`.
pub(crate) fn is_requested() -> bool {
    std::env::args().any(|argument| argument == "--check")
}

/// Responds to client requests: takes method and parameters, returns the result.
type Responder = Box<dyn FnMut(&str, &Value) -> Value + Send>;

pub(crate) struct Client {
    requests: WriteHalf<DuplexStream>,
    responses: Lines<BufReader<ReadHalf<DuplexStream>>>,
    last_id: u64,
    /// The `_meta` of every request, without the progress token.
    meta: Value,
    responder: Responder,
    /// Notifications that were not read yet.
    notifications: VecDeque<Value>,
}

impl Client {
    /// Connects as a client of 2026-07-28, without a handshake.
    pub(crate) fn connect(server: Server) -> Self {
        let mut client = Self::open(server);
        client.meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": "debug",
        });
        client
    }

    /// Connects as a client of an earlier revision, with a handshake.
    pub(crate) async fn connect_legacy(
        server: Server,
        revision: &str,
        capabilities: Value,
    ) -> CheckResult<Self> {
        let mut client = Self::open(server);
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": { "name": "check", "version": "1.0.0" },
        });
        let agreed = client.call("initialize", params).await?;
        assert_eq!(agreed["protocolVersion"], revision);
        client
            .notify("notifications/initialized", json!({}))
            .await?;
        Ok(client)
    }

    fn open(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(turnbuckle::ndjson::serve(reader, writer, server));
        let (responses, requests) = tokio::io::split(ours);
        Self {
            requests,
            responses: BufReader::new(responses).lines(),
            last_id: 0,
            meta: json!({}),
            responder: Box::new(|method, _| panic!("unexpected client request `{method}`")),
            notifications: VecDeque::new(),
        }
    }

    /// Declares capabilities with every request.
    pub(crate) fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        self
    }

    /// Requests log messages of this level and above.
    pub(crate) fn log_level(&mut self, level: &str) {
        self.meta["io.modelcontextprotocol/logLevel"] = level.into();
    }

    /// Sets the response to client requests.
    pub(crate) fn respond_with(
        mut self,
        responder: impl FnMut(&str, &Value) -> Value + Send + 'static,
    ) -> Self {
        self.responder = Box::new(responder);
        self
    }

    /// Calls a tool and returns its result.
    pub(crate) async fn tool(&mut self, name: &str, arguments: Value) -> CheckResult<Value> {
        let params = json!({ "name": name, "arguments": arguments });
        self.call("tools/call", params).await
    }

    /// Calls a method, retries it with the responses to its input requests, and returns the result.
    pub(crate) async fn call(&mut self, method: &str, mut params: Value) -> CheckResult<Value> {
        loop {
            let id = self.start(method, params.clone()).await?;
            let mut message = self.response_to(id).await?;
            let Some(result) = message.get_mut("result") else {
                return Err(format!("this is not a result: {message}").into());
            };
            if result["resultType"] != "input_required" {
                return Ok(result.take());
            }
            let requests = result["inputRequests"].as_object().into_iter().flatten();
            let responses: Map<String, Value> = requests
                .map(|(key, request)| (key.clone(), self.respond(request)))
                .collect();
            params["inputResponses"] = responses.into();
            params["requestState"] = result["requestState"].take();
        }
    }

    /// Calls a method that must fail, and returns the error.
    pub(crate) async fn call_error(&mut self, method: &str, params: Value) -> CheckResult<Value> {
        let id = self.start(method, params).await?;
        let mut message = self.response_to(id).await?;
        match message.get_mut("error") {
            Some(error) => Ok(error.take()),
            None => Err(format!("this is not an error: {message}").into()),
        }
    }

    /// Sends a request without waiting for its response, and returns its id.
    pub(crate) async fn start(&mut self, method: &str, mut params: Value) -> CheckResult<u64> {
        println!("> {}", shortened(&format!("{method} {params}")));
        self.last_id += 1;
        let id = self.last_id;
        params["_meta"] = self.meta.clone();
        params["_meta"]["progressToken"] = id.into();
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        Ok(id)
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) -> CheckResult {
        println!("> {}", shortened(&format!("{method} {params}")));
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await
    }

    /// Waits for the response to a request, and stores the notifications received before it.
    pub(crate) async fn response_to(&mut self, id: u64) -> CheckResult<Value> {
        loop {
            let message = self.next().await?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
            self.notifications.push_back(message);
        }
    }

    /// Returns the parameters of the next notification with this method, and waits for it if necessary.
    pub(crate) async fn notification(&mut self, method: &str) -> CheckResult<Value> {
        loop {
            if let Some(at) = self
                .notifications
                .iter()
                .position(|it| it["method"] == method)
            {
                let message = self.notifications.remove(at);
                return Ok(message.map_or(Value::Null, |mut it| it["params"].take()));
            }
            let message = self.next().await?;
            self.notifications.push_back(message);
        }
    }

    /// Returns whether an unread notification with this method was received.
    pub(crate) fn has_notification(&self, method: &str) -> bool {
        self.notifications.iter().any(|it| it["method"] == method)
    }

    /// Returns the response to a client request.
    pub(crate) fn respond(&mut self, request: &Value) -> Value {
        let method = request["method"].as_str().unwrap_or_default();
        (self.responder)(method, &request["params"])
    }

    /// Returns the next message that is not a client request, and responds to those before it.
    async fn next(&mut self) -> CheckResult<Value> {
        loop {
            let line = self
                .responses
                .next_line()
                .await?
                .ok_or("the server closed the connection")?;
            println!("< {}", shortened(&line));
            let message: Value = serde_json::from_str(&line)?;
            if message.get("method").is_none() || message.get("id").is_none() {
                return Ok(message);
            }
            let result = self.respond(&message);
            self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
                .await?;
        }
    }

    async fn send(&mut self, message: Value) -> CheckResult {
        let line = format!("{message}\n");
        Ok(self.requests.write_all(line.as_bytes()).await?)
    }
}

/// Returns the text of a tool's result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(150) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
