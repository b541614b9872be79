//! The client's handlers of server requests, and the notifications that it received.

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

/// A clone shares the same state.
#[derive(Clone, Default)]
pub struct ClientHandlers {
    requests: Arc<Mutex<Vec<Value>>>,
    declines: Arc<AtomicBool>,
    notifications: Arc<Mutex<Vec<(&'static str, Value)>>>,
}

impl ClientHandlers {
    /// The last request of the server.
    pub fn last_request(&self) -> Value {
        self.requests
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default()
    }

    /// Sets whether requests are declined from now on.
    pub fn decline(&self, declines: bool) {
        self.declines.store(declines, Ordering::Relaxed);
    }

    /// Takes all received notifications of a kind.
    pub fn take(&self, kind: &str) -> Vec<Value> {
        let mut notifications = self.notifications.lock().unwrap();
        let (taken, rest) = notifications.drain(..).partition(|(of, _)| *of == kind);
        *notifications = rest;
        let taken: Vec<(&str, Value)> = taken;
        taken
            .into_iter()
            .map(|(_, notification)| notification)
            .collect()
    }

    fn record_request(&self, request: impl Serialize) -> Value {
        let request = to_json(request);
        self.requests.lock().unwrap().push(request.clone());
        request
    }

    fn record_notification(&self, kind: &'static str, notification: impl Serialize) {
        self.notifications
            .lock()
            .unwrap()
            .push((kind, to_json(notification)));
    }
}

impl ClientHandler for ClientHandlers {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = self.record_request(request);
        Ok(typed(match request["mode"].as_str() {
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
        self.record_request(request);
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
        notification: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.record_notification("progress", notification);
    }

    async fn on_logging_message(
        &self,
        notification: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.record_notification("message", notification);
    }

    async fn on_resource_updated(
        &self,
        notification: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.record_notification("updated", notification);
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

/// Returns a value as JSON.
pub fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("the types of the wire are JSON")
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("written for this type")
}
