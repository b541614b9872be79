//! Scripted replies of the mock server.

use std::time::Duration;

use serde_json::{Value, json};

/// A reply to a message.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedReply {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Additional HTTP headers.
    pub(crate) headers: Vec<(String, String)>,
    /// The kind of the HTTP body.
    pub(crate) body_kind: BodyKind,
    /// The steps, in order.
    pub(crate) steps: Vec<ScriptStep>,
}

/// The kind of an HTTP body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// No body.
    Empty,
    /// The last message, as JSON.
    Json,
    /// An event stream.
    Stream,
}

/// A step of a reply.
#[derive(Clone, Debug)]
pub(crate) enum ScriptStep {
    /// Sends a message.
    Send(Value),
    /// Sends a request and waits for the response, with a timeout.
    SendAndWait(Value),
    /// Adds ids with this prefix to the following events, starting with an event without data.
    StartEventIds(&'static str),
    /// Sends the `retry` delay.
    Retry(Duration),
    /// Waits.
    Wait(Duration),
    /// Interrupts the stream; an ndjson connection stays open because it cannot be resumed.
    Interrupt,
    /// Keeps the stream open until the client closes it.
    KeepOpen,
}

impl ScriptedReply {
    /// Replies with a message.
    pub(crate) fn message(message: Value) -> Self {
        Self::steps([ScriptStep::Send(message)])
    }

    /// Replies with a result.
    pub(crate) fn result(request: &Value, result: &Value) -> Self {
        Self::message(response(request, result))
    }

    /// Replies with an error.
    pub(crate) fn error(request: &Value, code: i64, message: &str) -> Self {
        Self::message(json!({
            "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": message },
        }))
    }

    /// Runs these steps; the last message is the response.
    pub(crate) fn steps(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body_kind: BodyKind::Json,
            steps: steps.into_iter().collect(),
        }
    }

    /// Replies with an HTTP status only.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body_kind: BodyKind::Empty,
            steps: Vec::new(),
        }
    }

    /// Sets the status.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sends an event stream.
    pub(crate) fn streamed(mut self) -> Self {
        self.body_kind = BodyKind::Stream;
        self
    }

    /// Adds steps at the start.
    pub(crate) fn first(mut self, steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        self.steps.splice(0..0, steps);
        self
    }
}

/// Builds a response.
pub(crate) fn response(request: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}
