//! Responses to requests, and requests that wait for one.

use serde_json::Value;

use super::response_task::ResponseTask;
use crate::engine::{
    outcome::{Evidence, NotPassed, Outcome},
    transcript::{HttpHead, Transcript},
};

/// The response to a request.
#[derive(Clone, Debug)]
pub(crate) struct ProbeResponse {
    /// The message; null for an HTTP response without one.
    pub(crate) value: Value,
    /// The HTTP status.
    pub(crate) status: Option<u16>,
    /// The head of the HTTP response.
    pub(crate) head: Option<HttpHead>,
    /// Entries received between the request and the response.
    pub(crate) before: Vec<usize>,
    /// The entry of the request.
    pub(crate) sent: Option<usize>,
    /// The entry of the response.
    pub(crate) received: Option<usize>,
}

impl ProbeResponse {
    pub(super) fn new(
        transcript: &Transcript,
        pending: &PendingResponse,
        received: Option<usize>,
        before: Vec<usize>,
    ) -> Self {
        if let (Some(received), sent @ Some(_)) = (received, pending.sent) {
            transcript.update(received, |entry| entry.response_to = sent);
        }
        let message = received.and_then(|number| transcript.entry(number).json());
        let head = pending
            .head
            .and_then(|number| transcript.entry(number).head);
        Self {
            value: message.unwrap_or_default(),
            status: pending.status,
            head,
            before,
            sent: pending.sent,
            received: received.or(pending.head),
        }
    }

    /// Returns the result; an error is a violation.
    pub(crate) fn result(&self) -> Result<&Value, NotPassed> {
        match self.value.get("result") {
            Some(result) => Ok(result),
            None => Err(self.violation(format!("{} instead of a result", self.describe()))),
        }
    }

    /// Returns the error code; a result is a violation.
    pub(crate) fn error(&self) -> Result<i64, NotPassed> {
        match self.value["error"]["code"].as_i64() {
            Some(code) => Ok(code),
            None => Err(self.violation(format!("{} instead of an error", self.describe()))),
        }
    }

    /// Checks for an error with one of these codes.
    pub(crate) fn expect_error(&self, codes: &[i64]) -> Outcome {
        let code = self.error()?;
        if codes.contains(&code) {
            self.evidence()
        } else {
            let expected: Vec<_> = codes.iter().map(i64::to_string).collect();
            Err(self.violation(format!(
                "the error {code} instead of {}",
                expected.join(" or ")
            )))
        }
    }

    /// Returns the value of a header of the response.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.as_ref()?.header(name)
    }

    /// Describes the response in a few words.
    pub(crate) fn describe(&self) -> String {
        if let Some(error) = self.value.get("error") {
            let message = error["message"].as_str().unwrap_or_default();
            return format!("the error {} “{message}”", error["code"]);
        }
        if self.value.get("result").is_some() {
            return "a result".to_owned();
        }
        match self.status {
            Some(status) => format!("HTTP status {status} without a message"),
            None => "something other than a response".to_owned(),
        }
    }

    /// Returns the entries of the request and the response.
    pub(crate) fn entries(&self) -> impl Iterator<Item = usize> + use<> {
        self.sent.into_iter().chain(self.received)
    }

    /// Passes with this response as evidence.
    pub(crate) fn evidence(&self) -> Outcome {
        Evidence::from_entries(self.entries())
    }

    /// Reports a violation with this response as evidence.
    pub(crate) fn violation(&self, observed: impl Into<String>) -> NotPassed {
        NotPassed::violation(observed, self.entries())
    }
}

/// A request that waits for its response. On HTTP, dropping it closes the connection.
pub(crate) struct PendingResponse {
    /// The id of the request; `None` for a notification.
    pub(crate) id: Option<Value>,
    /// The entry of the request.
    pub(crate) sent: Option<usize>,
    pub(super) status: Option<u16>,
    pub(super) head: Option<usize>,
    pub(super) response_task: Option<ResponseTask>,
}

impl PendingResponse {
    pub(super) fn on_line(id: Option<Value>, sent: usize) -> Self {
        Self {
            id,
            sent: Some(sent),
            status: None,
            head: None,
            response_task: None,
        }
    }

    pub(super) fn posted(id: Option<Value>, response_task: ResponseTask) -> Self {
        Self {
            id,
            sent: Some(response_task.sent),
            status: None,
            head: None,
            response_task: Some(response_task),
        }
    }

    pub(super) fn head(&mut self, status: u16, number: usize) {
        self.status = Some(status);
        self.head = Some(number);
    }

    /// Returns whether the server accepted the POST.
    pub(super) fn is_accepted(&self) -> bool {
        self.status
            .is_some_and(|status| (200..300).contains(&status))
    }

    /// Reads the rest of the response in the background, so that it is recorded and the connection
    /// can be reused.
    pub(super) fn finish(&mut self) {
        if let Some(response_task) = self.response_task.take() {
            tokio::spawn(response_task.finish());
        }
    }

    /// Returns whether a message is the response.
    ///
    /// An id of another type with the same text also counts, so that one rule reports it and the others are tested. On
    /// HTTP an error without an id belongs to the request of the same exchange (`own`).
    pub(super) fn is_response(&self, message: &Value, own: bool) -> bool {
        if message.get("method").is_some() {
            return false;
        }
        match (message.get("id"), &self.id) {
            (Some(response_id), Some(request_id)) if is_same_id(response_id, request_id) => true,
            (Some(Value::Null) | None, _) => own && message.get("error").is_some(),
            _ => false,
        }
    }
}

/// Returns whether two ids are equal apart from their type: `1`, `1.0` and `"1"`.
fn is_same_id(response_id: &Value, request_id: &Value) -> bool {
    let text = |id: &Value| match id {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
            _ => number.to_string(),
        }),
        _ => None,
    };
    response_id == request_id
        || text(response_id).is_some_and(|text_of| Some(text_of) == text(request_id))
}
