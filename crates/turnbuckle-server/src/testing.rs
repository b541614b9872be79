//! Trying a server in every way a client may speak to it, in memory.
//!
//! [`every_way`] runs one tool call in the two ways that questions reach a client, and compares what comes of it.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use crate::Server;

/// Rounds after which a call that asks again and again is given up.
const MOST_ROUNDS: usize = 32;

/// What a handler does to the world, noted by itself so that runs can be compared.
///
/// ```
/// use turnbuckle_server::testing::Effects;
///
/// let effects = Effects::default();
/// effects.note("sent the letter");
/// assert_eq!(effects.seen(), ["sent the letter"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Effects {
    seen: Arc<Mutex<Vec<String>>>,
}

impl Effects {
    /// Notes that something happened.
    pub fn note(&self, what: impl Into<String>) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what.into());
    }

    /// Everything that happened, in order.
    pub fn seen(&self) -> Vec<String> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A tool call to be tried in every way.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Trial {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What the client says it can do.
    pub capabilities: Value,
}

impl Trial {
    /// Calls a tool as a client that can be asked anything.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        let capabilities = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} });
        Self {
            tool: tool.into(),
            arguments,
            capabilities,
        }
    }
}

/// What came of a tool call, whichever way it went.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// The tool's result: content, structured content and whether it is an error.
    pub result: Value,
    /// The JSON-RPC error, if there is no result.
    pub error: Option<Value>,
    /// Progress and log messages, in order.
    pub notifications: Vec<Value>,
    /// What was asked, in order.
    pub questions: Vec<String>,
    /// What the handler did to the world.
    pub effects: Vec<String>,
}

/// Runs one tool call as a client with a session sees it, and as a client sees it that returns with answers to another
/// instance each time; both must give the same.
///
/// `server` makes an instance that notes its effects; `answer` plays the client: method and parameters of a question
/// in, the result back. Returns what both ways gave.
///
/// # Panics
///
/// If the two ways differ: then something in the handler is not repeated safely.
pub async fn every_way(
    trial: Trial,
    server: impl Fn(Effects) -> Server,
    answer: impl Fn(&str, &Value) -> Value,
) -> Trace {
    let waiting = in_a_session(&trial, &server, &answer).await;
    let returning = in_rounds(&trial, &server, &answer).await;
    same("the results", &waiting.result, &returning.result);
    same("the errors", &waiting.error, &returning.error);
    same("the questions", &waiting.questions, &returning.questions);
    same(
        "the notifications",
        &waiting.notifications,
        &returning.notifications,
    );
    same("the effects", &waiting.effects, &returning.effects);
    waiting
}

fn same<T: PartialEq + Debug>(what: &str, waiting: &T, returning: &T) {
    assert!(
        waiting == returning,
        "{what} differ:\n  with a client that is asked while the call waits: {waiting:?}\n  \
         with a client that returns with its answers:      {returning:?}"
    );
}

/// The call waits while the client answers.
async fn in_a_session(
    trial: &Trial,
    server: &impl Fn(Effects) -> Server,
    answer: &impl Fn(&str, &Value) -> Value,
) -> Trace {
    let effects = Effects::default();
    let mut peer = Peer::connect(server(effects.clone()));
    let mut trace = Trace::default();
    peer.send(
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": trial.capabilities,
        "clientInfo": { "name": "every-way", "version": "0" },
    } }),
    )
    .await;
    peer.receive().await;
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    peer.send(json!({ "jsonrpc": "2.0", "id": "level", "method": "logging/setLevel", "params": { "level": "debug" } })).await;
    peer.receive().await;
    peer.send(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": trial.tool, "arguments": trial.arguments, "_meta": { "progressToken": "p" },
    } }),
    )
    .await;
    loop {
        let message = peer.receive().await;
        match message.get("method").and_then(Value::as_str) {
            Some(method) if message.get("id").is_some() => {
                trace.questions.push(method.to_owned());
                let result = answer(method, &message["params"]);
                peer.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
                    .await;
            }
            Some(_) => trace.note(message),
            None => {
                trace.finish(&message, &effects);
                return trace;
            }
        }
    }
}

/// The client returns with its answers, each time to another instance.
async fn in_rounds(
    trial: &Trial,
    server: &impl Fn(Effects) -> Server,
    answer: &impl Fn(&str, &Value) -> Value,
) -> Trace {
    let effects = Effects::default();
    let mut trace = Trace::default();
    let mut params = json!({
        "name": trial.tool, "arguments": trial.arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "every-way", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": trial.capabilities,
            "io.modelcontextprotocol/logLevel": "debug",
            "progressToken": "p",
        },
    });
    // A store that the instances share, as they would behind one endpoint.
    let store = server(Effects::default()).store_ref().clone();
    for round in 0..MOST_ROUNDS {
        let instance = server(effects.clone())
            .state_keys([b"known to every instance"])
            .store(store.clone());
        let mut peer = Peer::connect(instance);
        peer.send(
            json!({ "jsonrpc": "2.0", "id": round, "method": "tools/call", "params": params }),
        )
        .await;
        let message = loop {
            let message = peer.receive().await;
            if message.get("method").is_none() {
                break message;
            }
            trace.note(message);
        };
        if message["result"]["resultType"] != "input_required" {
            trace.finish(&message, &effects);
            return trace;
        }
        let mut responses = serde_json::Map::new();
        for (key, question) in message["result"]["inputRequests"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let method = question["method"].as_str().unwrap_or_default();
            trace.questions.push(method.to_owned());
            responses.insert(key.clone(), answer(method, &question["params"]));
        }
        params["inputResponses"] = responses.into();
        params["requestState"] = message["result"]["requestState"].clone();
    }
    panic!("the call still asks after {MOST_ROUNDS} rounds");
}

impl Trace {
    fn note(&mut self, mut message: Value) {
        // The same message says less to an older client; nothing here depends on that.
        message["params"]
            .as_object_mut()
            .map(|params| params.remove("_meta"));
        self.notifications.push(message["params"].take());
    }

    fn finish(&mut self, message: &Value, effects: &Effects) {
        let result = &message["result"];
        self.result = json!({
            "content": result["content"],
            "structuredContent": result["structuredContent"],
            "isError": result["isError"],
        });
        self.error = message.get("error").cloned();
        self.effects = effects.seen();
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            result: Value::Null,
            error: None,
            notifications: vec![],
            questions: vec![],
            effects: vec![],
        }
    }
}

/// The client's end of a connection, one JSON value per line.
struct Peer {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    fn connect(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(crate::lines::serve_lines(reader, writer, server));
        let (reader, writer) = tokio::io::split(ours);
        Self {
            lines: BufReader::new(reader).lines(),
            writer,
        }
    }

    async fn send(&mut self, message: Value) {
        self.writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("the server reads");
    }

    async fn receive(&mut self) -> Value {
        let line = self
            .lines
            .next_line()
            .await
            .expect("the server writes")
            .expect("the server answers");
        serde_json::from_str(&line).expect("the server writes JSON")
    }
}
