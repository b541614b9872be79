//! What a played server does in answer to a message.

use std::time::Duration;

use serde_json::{Value, json};

/// What a played server answers with.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The status, on HTTP.
    pub(crate) status: u16,
    /// Headers beside those that the form brings, on HTTP.
    pub(crate) headers: Vec<(String, String)>,
    /// What the body is, on HTTP.
    pub(crate) form: Form,
    /// What is done, one after the other.
    pub(crate) cues: Vec<Cue>,
}

/// What the body of a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing.
    Empty,
    /// The last message, as JSON.
    Json,
    /// A stream of events.
    Stream,
}

/// One thing that is done.
#[derive(Clone, Debug)]
pub(crate) enum Cue {
    /// Says a message.
    Say(Value),
    /// Asks the client, and waits a while for the answer.
    Ask(Value),
    /// Gives the events from here on ids that begin so; the first has no data.
    Mark(&'static str),
    /// Says how long to wait before connecting again.
    Retry(Duration),
    /// Waits.
    Wait(Duration),
    /// Breaks the stream off; a line is left open, as it has nothing to resume.
    Cut,
    /// Stays until the client lets go.
    Stay,
}

impl Reply {
    /// Answers with a message.
    pub(crate) fn say(message: Value) -> Self {
        Self::cues([Cue::Say(message)])
    }

    /// Answers a request with a result.
    pub(crate) fn result(request: &Value, result: &Value) -> Self {
        Self::say(response(request, result))
    }

    /// Answers a request with an error.
    pub(crate) fn error(request: &Value, code: i64, message: &str) -> Self {
        Self::say(json!({
            "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": message },
        }))
    }

    /// Does these things, and answers with the last message.
    pub(crate) fn cues(cues: impl IntoIterator<Item = Cue>) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            form: Form::Json,
            cues: cues.into_iter().collect(),
        }
    }

    /// Answers with a status and nothing else.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            form: Form::Empty,
            cues: Vec::new(),
        }
    }

    /// Has this status.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Has this header.
    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Is a stream of events.
    pub(crate) fn streamed(mut self) -> Self {
        self.form = Form::Stream;
        self
    }

    /// Does something before all else.
    pub(crate) fn first(mut self, cues: impl IntoIterator<Item = Cue>) -> Self {
        self.cues.splice(0..0, cues);
        self
    }
}

/// Makes the answer to a request.
pub(crate) fn response(request: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}
