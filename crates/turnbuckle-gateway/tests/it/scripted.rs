//! Upstream servers under control of the test, message by message.

use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf,
    },
    sync::mpsc,
};
use turnbuckle_client::{LifecycleMode, Target, ndjson::NdjsonClient};
use turnbuckle_gateway::Upstream;

/// The connections that a gateway opens to a scripted server.
pub(crate) struct ScriptedServer {
    connections: mpsc::UnboundedReceiver<ScriptedConnection>,
}

/// A connection of a gateway to a scripted server.
pub(crate) struct ScriptedConnection {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    /// The parameters of the handshake.
    pub(crate) handshake: Value,
}

/// Returns a server that responds to the handshake, and leaves everything else to the test.
pub(crate) fn scripted(mode: LifecycleMode) -> (Upstream, ScriptedServer) {
    scripted_as("scripted", mode)
}

/// Like [`scripted`], with a name.
pub(crate) fn scripted_as(name: &str, mode: LifecycleMode) -> (Upstream, ScriptedServer) {
    scripted_with(name, mode, &json!({}))
}

/// Like [`scripted_as`], with further capabilities.
pub(crate) fn scripted_with(
    name: &str,
    mode: LifecycleMode,
    added: &Value,
) -> (Upstream, ScriptedServer) {
    let mut capabilities = json!({ "tools": {}, "prompts": {}, "resources": {}, "logging": {} });
    let added = added.as_object().expect("capabilities are an object");
    for (name, settings) in added {
        capabilities[name] = settings.clone();
    }
    let (sender, connections) = mpsc::unbounded_channel();
    let upstream = Upstream::new(name, move || {
        let (near, far) = tokio::io::duplex(1024 * 1024);
        let (reader, writer) = tokio::io::split(far);
        let connection = ScriptedConnection {
            lines: BufReader::new(reader).lines(),
            writer,
            handshake: Value::Null,
        };
        let (sender, capabilities) = (sender.clone(), capabilities.clone());
        tokio::spawn(async move {
            if let Some(connection) = connection.shake_hands(capabilities).await {
                let _ = sender.send(connection);
            }
        });
        let (reader, writer) = tokio::io::split(near);
        Target::from(NdjsonClient::new(reader, writer))
    });
    (
        upstream.lifecycle_mode(mode),
        ScriptedServer { connections },
    )
}

impl ScriptedServer {
    /// Returns the next connection, after its handshake. The gateway opens one at the start, to learn about the server.
    pub(crate) async fn connection(&mut self) -> ScriptedConnection {
        self.connections.recv().await.expect("the gateway exists")
    }
}

impl ScriptedConnection {
    async fn shake_hands(mut self, capabilities: Value) -> Option<Self> {
        let info = json!({ "name": "scripted", "version": "1" });
        let first = self.receive().await?;
        let is_legacy = first["method"] == "initialize";
        let result = if is_legacy {
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info })
        } else {
            json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private", "_meta": { "io.modelcontextprotocol/serverInfo": info },
            })
        };
        self.respond(&first, result).await;
        self.handshake = first["params"].clone();
        if is_legacy {
            let initialized = self.receive().await?;
            assert_eq!(initialized["method"], "notifications/initialized");
        }
        Some(self)
    }

    /// Returns the next message, or `None` at the end of the connection.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok()??;
        Some(serde_json::from_str(&line).expect("the gateway sends JSON"))
    }

    /// Returns the next message with a method. Others before it are dropped.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        loop {
            let message = self.receive().await;
            let message = message.unwrap_or_else(|| panic!("{method} was not received"));
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Returns the response to a request of the server. Other messages before it are dropped.
    pub(crate) async fn response(&mut self, id: i64) -> Value {
        loop {
            let message = self.receive().await;
            let message = message.unwrap_or_else(|| panic!("no response to {id}"));
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let mut line = message.to_string();
        line.push('\n');
        // The gateway may have closed the connection.
        let _ = self.writer.write_all(line.as_bytes()).await;
    }

    pub(crate) async fn respond(&mut self, request: &Value, result: Value) {
        let id = &request["id"];
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
    }

    pub(crate) async fn respond_error(&mut self, request: &Value, error: Value) {
        let id = &request["id"];
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            .await;
    }

    /// Responds to a call with a text.
    pub(crate) async fn respond_text(&mut self, request: &Value, text: &str) {
        let content = json!([{ "type": "text", "text": text }]);
        self.respond(request, json!({ "content": content })).await;
    }

    pub(crate) async fn request(&mut self, id: i64, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }
}
