//! A client of an ndjson connection.

use std::{io, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    task::JoinHandle,
    time::timeout,
};
use turnbuckle_server::{Server, ndjson};

/// The buffer size of each direction.
const BUFFER: usize = 64 * 1024;

/// Paused time advances only when every task is idle; then no more output follows.
const QUIET: Duration = Duration::from_millis(1);

/// A client that sends any bytes, and checks that it receives only messages.
pub struct LinePeer {
    stream: DuplexStream,
    received: Vec<u8>,
    serving: JoinHandle<io::Result<()>>,
}

impl LinePeer {
    /// Connects a client to a server.
    pub fn new(server: Server) -> Self {
        let (stream, far) = tokio::io::duplex(BUFFER);
        let (reader, writer) = tokio::io::split(far);
        Self {
            stream,
            received: Vec::new(),
            serving: tokio::spawn(ndjson::serve(reader, writer, server)),
        }
    }

    /// Sends bytes and returns all messages that arrive without waiting.
    pub async fn send(&mut self, bytes: &[u8]) -> Vec<Value> {
        // Fails once the server has stopped reading, which it may.
        let _ = timeout(QUIET, self.stream.write_all(bytes)).await;
        self.messages(QUIET).await
    }

    /// Returns all messages until none arrives for a while.
    pub async fn messages(&mut self, while_: Duration) -> Vec<Value> {
        let mut chunk = [0; 16 * 1024];
        let mut messages = Vec::new();
        while let Ok(Ok(length @ 1..)) = timeout(while_, self.stream.read(&mut chunk)).await {
            self.received.extend_from_slice(&chunk[..length]);
            messages.extend(self.take_lines());
        }
        messages
    }

    /// Sends a modern request as a line and returns its response.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut answers = self.send(format!("{message}\n").as_bytes()).await;
        let answer = answers.pop().expect("a request is answered");
        assert!(answers.is_empty(), "a request has one answer: {answers:?}");
        answer
    }

    /// Ends the input and returns the messages until the server closes the connection.
    pub async fn finish(mut self) -> Vec<Value> {
        let _ = self.stream.shutdown().await;
        let mut rest = Vec::new();
        self.stream
            .read_to_end(&mut rest)
            .await
            .expect("reading from memory does not fail");
        self.received.extend_from_slice(&rest);
        let messages = self.take_lines();
        assert!(self.received.is_empty(), "the last line is whole");
        let served = self.serving.await.expect("serving is not cancelled");
        served.expect("nothing that a peer sends is an error of serving");
        messages
    }

    fn take_lines(&mut self) -> Vec<Value> {
        let Some(end) = self.received.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.received.split_off(end + 1);
        let lines = std::mem::replace(&mut self.received, rest);
        lines[..end]
            .split(|byte| *byte == b'\n')
            .map(message)
            .collect()
    }
}

/// Adds the `_meta` of a modern request.
pub fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} },
    });
    params
}

/// Parses a line of the server: a message or an array of them.
pub fn message(line: &[u8]) -> Value {
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        // An id may be any integer and is echoed as received, even if it overflows serde_json.
        Err(error) if error.to_string().starts_with("number out of range") => return Value::Null,
        Err(error) => panic!("{error} in {:?}", String::from_utf8_lossy(line)),
    };
    let entries = match &message {
        Value::Array(entries) => entries,
        one => std::slice::from_ref(one),
    };
    assert!(!entries.is_empty());
    for entry in entries {
        assert_eq!(entry["jsonrpc"], "2.0", "{message}");
        let members = ["method", "result", "error"];
        let found = members.iter().filter(|name| entry.get(name).is_some());
        assert_eq!(found.count(), 1, "{message}");
    }
    message
}
