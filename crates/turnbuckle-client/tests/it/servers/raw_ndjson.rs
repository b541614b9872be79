//! A server in memory that writes exactly the bytes of a test.

use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
    },
    task::JoinHandle,
};
use turnbuckle_client::{Client, ClientBuilder, ConnectError, ndjson::NdjsonClient};
use turnbuckle_spec_coverage::saw_message;

/// The server's end of a connection.
pub(crate) struct RawServer {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

/// A task that connects a client.
pub(crate) type PendingConnect = JoinHandle<Result<Client, ConnectError>>;

impl RawServer {
    /// Starts to connect a client.
    pub(crate) fn connect(builder: ClientBuilder) -> (Self, PendingConnect) {
        let (near, far) = duplex(1024 * 1024);
        let (input, output) = split(far);
        let (reader, writer) = split(near);
        let lines = NdjsonClient::new(reader, writer);
        let start_connect = tokio::spawn(builder.connect(lines));
        let input = BufReader::new(input);
        (Self { input, output }, start_connect)
    }

    /// Connects a client, as a server of 2026-07-28.
    pub(crate) async fn modern(builder: ClientBuilder) -> (Self, Client) {
        let (mut script, start_connect) = Self::connect(builder);
        let probe = script.next().await;
        script.respond(&probe, discover_result()).await;
        (script, start_connect.await.unwrap().unwrap())
    }

    /// Returns the next line without its line break; empty at the end.
    pub(crate) async fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        saw_message(&line);
        assert!(line.is_empty() || line.ends_with('\n'), "{line:?}");
        line.trim_end_matches('\n').to_owned()
    }

    /// Returns the next message.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.next_line().await;
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"))
    }

    /// Writes bytes.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        saw_message(&String::from_utf8_lossy(bytes.as_ref()));
        self.output.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn respond(&mut self, to: &Value, result: Value) {
        self.write(format!("{}\n", response(to, result))).await;
    }

    /// Sends a notification of a subscription.
    pub(crate) async fn notify_subscription(
        &mut self,
        what: &str,
        subscription: &Value,
        mut params: Value,
    ) {
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": subscription });
        let method = format!("notifications/{what}");
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.write(format!("{message}\n")).await;
    }

    pub(crate) async fn reject(&mut self, to: &Value, error: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "id": to["id"] });
        message["error"] = error;
        self.write(format!("{message}\n")).await;
    }
}

pub(crate) fn response(to: &Value, result: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": to["id"] });
    message["result"] = result;
    message
}

/// The `server/discover` result of a server of 2026-07-28.
pub(crate) fn discover_result() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {} },
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

/// The `initialize` result of a legacy server.
pub(crate) fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "script", "version": "1" },
    })
}

/// A tool result with one text block.
pub(crate) fn text_result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}
