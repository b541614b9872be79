//! What the client says when the server asks, and what it was told on the way.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
        ElicitResult, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
        ResourceUpdatedNotificationParam,
    },
    service::{NotificationContext, RequestContext},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A clone hears and remembers the same.
#[derive(Clone, Default)]
pub struct Answers {
    questions: Arc<Mutex<Vec<Value>>>,
    declines: Arc<AtomicBool>,
    notices: Arc<Mutex<Vec<(&'static str, Value)>>>,
}

impl Answers {
    /// The last thing that the server asked.
    pub fn question(&self) -> Value {
        self.questions
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default()
    }

    /// Says no from now on, or no longer.
    pub fn decline(&self, declines: bool) {
        self.declines.store(declines, Ordering::Relaxed);
    }

    /// Takes all notices of a kind that have come.
    pub fn take(&self, kind: &str) -> Vec<Value> {
        let mut notices = self.notices.lock().unwrap();
        let (taken, rest) = notices.drain(..).partition(|(of, _)| *of == kind);
        *notices = rest;
        let taken: Vec<(&str, Value)> = taken;
        taken.into_iter().map(|(_, notice)| notice).collect()
    }

    fn asked(&self, question: impl Serialize) -> Value {
        let question = plain(question);
        self.questions.lock().unwrap().push(question.clone());
        question
    }

    fn told(&self, kind: &'static str, notice: impl Serialize) {
        self.notices.lock().unwrap().push((kind, plain(notice)));
    }
}

impl ClientHandler for Answers {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = self.asked(request);
        Ok(typed(match question["mode"].as_str() {
            _ if self.declines.load(Ordering::Relaxed) => json!({ "action": "decline" }),
            Some("url") => json!({ "action": "accept" }),
            _ => json!({ "action": "accept", "content": { "name": "Ada", "dated": true } }),
        }))
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.asked(request);
        let content = json!({ "type": "text", "text": "all is well" });
        Ok(typed(
            json!({ "role": "assistant", "model": "none", "content": content }),
        ))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(typed(
            json!({ "roots": [{ "uri": "file:///srv/interop", "name": "here" }] }),
        ))
    }

    async fn on_progress(
        &self,
        notice: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.told("progress", notice);
    }

    async fn on_logging_message(
        &self,
        notice: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.told("message", notice);
    }

    async fn on_resource_updated(
        &self,
        notice: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.told("updated", notice);
    }

    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.capabilities = typed(json!({
            "sampling": {},
            "roots": { "listChanged": true },
            "elicitation": { "form": {}, "url": {} }
        }));
        config
    }
}

/// What a value is on the wire.
pub fn plain(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("the types of the wire are JSON")
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("written for this type")
}
