//! A test client on a pair of byte streams.
#![expect(
    clippy::needless_pass_by_value,
    reason = "so that a test says `json!` where it is needed"
)]

use std::{io, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    task::JoinHandle,
    time::timeout,
};
use turnbuckle_server::{Server, ndjson::NdjsonServer};
use turnbuckle_spec_coverage::saw_message;

/// The revisions with sessions.
pub(crate) const LEGACY: [&str; 5] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
];

/// A test client with plain JSON messages.
pub(crate) struct Peer {
    reader: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: Option<WriteHalf<DuplexStream>>,
    serving: JoinHandle<io::Result<()>>,
    next_id: i64,
}

impl Peer {
    /// Connects a peer to a server.
    pub(crate) fn new(server: Server) -> Self {
        Self::with(NdjsonServer::new(server))
    }

    /// Connects a peer to a server with options.
    pub(crate) fn with(lines: NdjsonServer) -> Self {
        Self::with_buffer(lines, 64 * 1024)
    }

    /// Connects a peer through streams that buffer at most `bytes` in each direction.
    pub(crate) fn with_buffer(lines: NdjsonServer, bytes: usize) -> Self {
        let (near, far) = tokio::io::duplex(bytes);
        let (far_reader, far_writer) = tokio::io::split(far);
        let (reader, writer) = tokio::io::split(near);
        Self {
            reader: BufReader::new(reader).lines(),
            writer: Some(writer),
            serving: tokio::spawn(lines.serve(far_reader, far_writer)),
            next_id: 100,
        }
    }

    /// Connects a peer and initializes a session with capabilities.
    pub(crate) async fn initialized(server: Server, revision: &str, capabilities: Value) -> Self {
        let mut peer = Self::new(server);
        peer.initialize_session(revision, capabilities).await;
        peer
    }

    pub(crate) async fn initialize_session(&mut self, revision: &str, capabilities: Value) {
        let response = self
            .call("initialize", initialize(revision, capabilities))
            .await;
        assert_eq!(response["result"]["protocolVersion"], revision);
        self.notify("notifications/initialized", json!({})).await;
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_line(&message.to_string()).await;
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        saw_message(line);
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let writer = self.writer.as_mut().expect("the input has not ended");
        // Fails if the server has stopped reading, which the test then sees.
        let _ = writer.write_all(bytes).await;
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    pub(crate) async fn cancel(&mut self, id: i64) {
        self.notify("notifications/cancelled", json!({ "requestId": id }))
            .await;
    }

    /// Sends a request and returns the next message, which must be its response.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let response = self.next().await;
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// Calls a tool in the session.
    pub(crate) async fn call_tool(&mut self, name: &str, arguments: Value) -> Value {
        self.call(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        )
        .await
    }

    /// Sends a stateless request.
    pub(crate) async fn call_modern(&mut self, method: &str, params: Value) -> Value {
        self.call(method, modern(params)).await
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_line().await).expect("every line is JSON")
    }

    /// The next line, unparsed.
    pub(crate) async fn next_line(&mut self) -> String {
        let line = timeout(Duration::from_secs(100), self.reader.next_line())
            .await
            .expect("a message comes in time")
            .unwrap()
            .expect("the stream continues");
        saw_message(&line);
        line
    }

    /// Fails if a message arrives within a second.
    pub(crate) async fn expect_no_message(&mut self) {
        if let Ok(line) = timeout(Duration::from_secs(1), self.reader.next_line()).await {
            panic!("unexpected message: {line:?}");
        }
    }

    /// Ends the input.
    pub(crate) async fn end_input(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            writer.shutdown().await.unwrap();
        }
    }

    /// Ends the input and returns all remaining messages.
    pub(crate) async fn finish(mut self) -> Vec<Value> {
        self.end_input().await;
        self.rest().await
    }

    /// Returns all messages until the server closes the connection.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(line) = self.reader.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).expect("every line is JSON"));
        }
        self.serving.await.unwrap().unwrap();
        rest
    }

    /// Waits for the server to stop, without reading. Returns its result.
    pub(crate) async fn wait_for_server_end(&mut self) -> io::Result<()> {
        timeout(Duration::from_secs(600), &mut self.serving)
            .await
            .expect("the server stops")
            .unwrap()
    }

    /// Disconnects, and returns the result of the server.
    pub(crate) async fn leave(self) -> io::Result<()> {
        drop((self.reader, self.writer));
        self.serving.await.unwrap()
    }
}

/// Parameters of `initialize`.
pub(crate) fn initialize(revision: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": { "name": "peer", "version": "1" },
    })
}

/// Adds the `_meta` of a stateless request.
pub(crate) fn modern(params: Value) -> Value {
    modern_with(params, json!({}))
}

/// Like [`modern`], for a client with capabilities.
pub(crate) fn modern_with(mut params: Value, capabilities: Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "peer", "version": "1" });
    params
}
