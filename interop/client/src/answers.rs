//! What the client says when the server asks, and what it was told on the way.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use turnbuckle_client::{
    Anomaly, ElicitationAction, FormRequest, FormResponse, SamplingRequest, UrlElicitationRequest,
};
use turnbuckle_protocol::types::{CreateMessageResult, LoggingMessageParams};

/// A clone hears and remembers the same.
#[derive(Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    declines: bool,
    questions: Vec<String>,
    logs: Vec<Value>,
    oddities: Vec<String>,
}

impl Answers {
    /// Says no from now on, or no longer.
    pub(crate) fn decline(&self, declines: bool) {
        self.lock().declines = declines;
    }

    /// Takes the last thing that the server asked.
    pub(crate) fn take_question(&self) -> String {
        self.lock().questions.pop().unwrap_or_default()
    }

    /// Takes the data of all log messages that have come.
    pub(crate) fn take_logs(&self) -> Vec<Value> {
        std::mem::take(&mut self.lock().logs)
    }

    /// Returns what was odd about the server.
    pub(crate) fn oddities(&self) -> Vec<String> {
        self.lock().oddities.clone()
    }

    /// Gives a name; everything else is left to its default.
    pub(crate) fn form(&self, form: &FormRequest) -> FormResponse {
        let mut heard = self.lock();
        heard.questions.push(form.message().to_owned());
        match heard.declines {
            true => form.decline().into(),
            false => form.accept(json!({ "name": "Ada" })).into(),
        }
    }

    pub(crate) fn visit(&self, visit: &UrlElicitationRequest) -> ElicitationAction {
        let mut heard = self.lock();
        heard.questions.push(visit.url().to_owned());
        match heard.declines {
            true => ElicitationAction::Decline,
            false => ElicitationAction::Accept,
        }
    }

    pub(crate) fn sample(&self, question: &SamplingRequest) -> CreateMessageResult {
        let asked = serde_json::to_string(&question.messages).unwrap_or_default();
        self.lock().questions.push(asked);
        CreateMessageResult::new("none", "all is well")
    }

    pub(crate) fn logged(&self, message: LoggingMessageParams) {
        self.lock().logs.push(message.data);
    }

    pub(crate) fn odd(&self, oddity: &Anomaly) {
        self.lock().oddities.push(oddity.to_string());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
