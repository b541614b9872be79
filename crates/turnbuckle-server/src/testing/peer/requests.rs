//! Requests, responses and round trips.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Peer;
use crate::testing::{MAX_ROUND_TRIPS, PeerResponse};

impl Peer {
    /// Sends a request and waits for its response.
    ///
    /// With a [responder](super::PeerBuilder::respond_with), client requests are handled and the request is retried
    /// with the responses. Otherwise `input_required` is returned like any response.
    pub async fn request(&mut self, method: &str, params: Value) -> PeerResponse {
        let mut params = params;
        for _ in 0..MAX_ROUND_TRIPS {
            let id = self.start(method, params.clone()).await;
            let response = self.finish(id).await;
            match self.responses(&response) {
                Some(responses) => {
                    params["inputResponses"] = responses;
                    params["requestState"] = response.expect_result()["requestState"].clone();
                }
                None => return response,
            }
        }
        self.fail(format_args!(
            "`{method}` still requires input after {MAX_ROUND_TRIPS} round trips"
        ))
    }

    /// Calls a tool with a progress token, and waits for its result.
    ///
    /// A peer that calls tools [as tasks](super::PeerBuilder::tasks) waits for the end of the task and handles its
    /// input requests.
    pub async fn call_tool(&mut self, name: &str, arguments: Value) -> PeerResponse {
        let params = self.call_params(name, &arguments);
        let response = self.request("tools/call", params).await;
        self.await_task(response).await
    }

    /// Calls a tool with a progress token and returns the id of the request, without waiting.
    ///
    /// The token is the id, so [`expect_progress`](Self::expect_progress) takes it; [`finish`](Self::finish) waits for
    /// the response, and [`cancel`](Self::cancel) cancels the call.
    pub async fn start_tool(&mut self, name: &str, arguments: Value) -> i64 {
        let params = self.call_params(name, &arguments);
        self.start("tools/call", params).await
    }

    /// Waits for a progress notification of a call and returns its parameters. An unread one counts.
    pub async fn expect_progress(&mut self, id: i64) -> Value {
        let matches = |message: &Value| {
            message["method"] == "notifications/progress"
                && message["params"]["progressToken"] == json!(id)
        };
        let mut message = self.expect(&format!("progress of #{id}"), matches).await;
        message["params"].take()
    }

    /// Returns the parameters of a tool call; its progress token is the id of the next request.
    fn call_params(&self, name: &str, arguments: &Value) -> Value {
        let mut params = json!({ "name": name, "arguments": arguments });
        params["_meta"]["progressToken"] = json!(self.last_id + 1);
        if self.identity.requests_tasks() {
            params["task"] = json!({});
        }
        params
    }

    /// Sends a request and returns its id, without waiting.
    pub async fn start(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        let params = self.identity.fill(params);
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// Waits for the response to a started request.
    pub async fn finish(&mut self, id: i64) -> PeerResponse {
        let is_request =
            |message: &Value| message.get("method").is_some() && message.get("id").is_some();
        let is_response =
            |message: &Value| message.get("method").is_none() && message["id"] == json!(id);
        let either = |message: &Value| is_response(message) || is_request(message);
        let message = self.expect(&format!("the response to #{id}"), either).await;
        if is_request(&message) {
            let method = &message["method"];
            self.fail(format_args!(
                "the server sent {method}, but no responder is set: set one with `respond_with`, \
                 or take the request with `expect_request`"
            ));
        }
        PeerResponse::new(message, self.recording.clone())
    }

    /// Cancels a request, as the revision and transport require.
    pub async fn cancel(&mut self, id: i64) {
        if !self.transport.abort_request(id) {
            self.notify("notifications/cancelled", json!({ "requestId": id }))
                .await;
        }
    }

    /// Returns the responses to an `input_required` result, if there is a responder.
    fn responses(&mut self, response: &PeerResponse) -> Option<Value> {
        let result = response.result()?;
        if result["resultType"] != "input_required" {
            return None;
        }
        self.responses_to(&result["inputRequests"])
    }

    /// Returns the responses to input requests, by key.
    pub(super) fn responses_to(&mut self, client_requests: &Value) -> Option<Value> {
        let responder = self.responder.as_mut()?;
        let mut responses = Map::new();
        for (key, request) in client_requests.as_object().into_iter().flatten() {
            let method = request["method"].as_str().unwrap_or_default();
            responses.insert(key.clone(), responder(method, &request["params"]));
        }
        Some(responses.into())
    }
}

impl Peer {
    /// Subscribes to changes, and returns when the subscription is active.
    ///
    /// `filter` is that of `subscriptions/listen`, for example `{ "toolsListChanged": true, "resourceSubscriptions":
    /// ["notes://all"] }`. Sessions always receive list changes; there each resource is subscribed separately.
    pub async fn listen(&mut self, filter: Value) {
        if self.identity.is_modern() {
            self.start("subscriptions/listen", json!({ "notifications": filter }))
                .await;
            self.expect_notification("notifications/subscriptions/acknowledged")
                .await;
            return;
        }
        let resources = filter["resourceSubscriptions"].as_array();
        for uri in resources.into_iter().flatten() {
            let response = self.request("resources/subscribe", json!({ "uri": uri }));
            response.await.expect_result();
        }
        // In the oldest revisions notifications start after the first response.
        self.request("ping", Value::Null).await.expect_result();
    }
}

/// Maximum number of polls of a task.
const MAX_POLLS: usize = 10_000;

impl Peer {
    /// Returns the result of a call, or of its task.
    pub(super) async fn await_task(&mut self, response: PeerResponse) -> PeerResponse {
        let Some(result) = response.result() else {
            return response;
        };
        if result["resultType"] == "task" {
            let id = result["taskId"].clone();
            return self.poll_task(id).await;
        }
        match result["task"]["taskId"].clone() {
            Value::Null => response,
            id => self.request("tasks/result", json!({ "taskId": id })).await,
        }
    }

    /// Polls a task and handles its input requests, until it ends.
    async fn poll_task(&mut self, id: Value) -> PeerResponse {
        let mut responded = Vec::new();
        for _ in 0..MAX_POLLS {
            let response = self.request("tasks/get", json!({ "taskId": id })).await;
            let task = response.expect_result();
            let outcome = match task["status"].as_str() {
                Some("completed") => {
                    json!({ "id": response.json()["id"], "result": task["result"] })
                }
                Some("failed") => json!({ "id": response.json()["id"], "error": task["error"] }),
                Some("cancelled") => {
                    let error = json!({ "code": -32603, "message": "the task was cancelled" });
                    json!({ "id": response.json()["id"], "error": error })
                }
                _ => {
                    self.respond_to_task(&id, task, &mut responded).await;
                    let pause = task["pollIntervalMs"].as_u64().unwrap_or(1_000);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    continue;
                }
            };
            return PeerResponse::new(outcome, self.recording.clone());
        }
        self.fail(format_args!("the task still runs after {MAX_POLLS} polls"))
    }

    /// Sends responses to new input requests of a task.
    async fn respond_to_task(&mut self, id: &Value, task: &Value, responded: &mut Vec<String>) {
        let mut client_requests = task["inputRequests"].clone();
        if let Some(client_requests) = client_requests.as_object_mut() {
            client_requests.retain(|key, _| !responded.contains(key));
        }
        let Some(open) = client_requests.as_object().filter(|open| !open.is_empty()) else {
            return;
        };
        responded.extend(open.keys().cloned());
        match self.responses_to(&client_requests) {
            Some(responses) => {
                let params = json!({ "taskId": id, "inputResponses": responses });
                let updated = self.request("tasks/update", params).await;
                updated.expect_result();
            }
            None => self.fail(
                "the task requires input, but no responder is set: set one with `respond_with`",
            ),
        }
    }
}
