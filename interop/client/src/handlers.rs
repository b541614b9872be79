//! The client's handlers of server requests, and the notifications that it received.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use turnbuckle_client::{
    Anomaly, ElicitationAction, FormRequest, FormResponse, SamplingRequest, UrlElicitationRequest,
};
use turnbuckle_protocol::types::{CreateMessageResult, LoggingMessageParams};

/// A clone shares the same state.
#[derive(Clone, Default)]
pub(crate) struct ClientHandlers(Arc<Mutex<Received>>);

#[derive(Default)]
struct Received {
    declines: bool,
    requests: Vec<String>,
    logs: Vec<Value>,
    anomalies: Vec<String>,
}

impl ClientHandlers {
    /// Sets whether requests are declined from now on.
    pub(crate) fn decline(&self, declines: bool) {
        self.lock().declines = declines;
    }

    /// Takes the last request of the server.
    pub(crate) fn take_request(&self) -> String {
        self.lock().requests.pop().unwrap_or_default()
    }

    /// Takes the data of all received log messages.
    pub(crate) fn take_logs(&self) -> Vec<Value> {
        std::mem::take(&mut self.lock().logs)
    }

    /// Returns the anomalies of the server.
    pub(crate) fn anomalies(&self) -> Vec<String> {
        self.lock().anomalies.clone()
    }

    /// Fills in a name and leaves everything else to its default.
    pub(crate) fn form(&self, form: &FormRequest) -> FormResponse {
        let mut received = self.lock();
        received.requests.push(form.message().to_owned());
        if received.declines {
            form.decline().into()
        } else {
            form.accept(json!({ "name": "Ada" })).into()
        }
    }

    pub(crate) fn open_url(&self, request: &UrlElicitationRequest) -> ElicitationAction {
        let mut received = self.lock();
        received.requests.push(request.url().to_owned());
        if received.declines {
            ElicitationAction::Decline
        } else {
            ElicitationAction::Accept
        }
    }

    pub(crate) fn sample(&self, request: &SamplingRequest) -> CreateMessageResult {
        let messages = serde_json::to_string(&request.messages).unwrap_or_default();
        self.lock().requests.push(messages);
        CreateMessageResult::new("none", "all is well")
    }

    pub(crate) fn record_log(&self, message: LoggingMessageParams) {
        self.lock().logs.push(message.data);
    }

    pub(crate) fn record_anomaly(&self, anomaly: &Anomaly) {
        self.lock().anomalies.push(anomaly.to_string());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
