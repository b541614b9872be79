//! Requests, their answers, and the rounds between them.

use serde_json::{Map, Value, json};

use super::Peer;
use crate::testing::{Answer, MOST_ROUNDS};

impl Peer {
    /// Sends a request and waits for its answer.
    ///
    /// If somebody [answers](super::Connect::answer), questions on the way are answered and the request is repeated with
    /// the answers; otherwise an answer that asks for input is an answer like any other.
    pub async fn request(&mut self, method: &str, params: Value) -> Answer {
        let mut params = params;
        for _ in 0..MOST_ROUNDS {
            let id = self.start(method, params.clone()).await;
            let answer = self.finish(id).await;
            match self.responses(&answer) {
                Some(responses) => {
                    params["inputResponses"] = responses;
                    params["requestState"] = answer.expect_result()["requestState"].clone();
                }
                None => return answer,
            }
        }
        self.fail(format_args!(
            "`{method}` still asks after {MOST_ROUNDS} rounds"
        ))
    }

    /// Calls a tool, wanting to hear of its progress, and waits for what comes of it.
    ///
    /// A peer that calls tools [as tasks](super::Connect::tasks) waits for the end of the task, and answers its questions.
    pub async fn call_tool(&mut self, name: &str, arguments: Value) -> Answer {
        let mut params = json!({ "name": name, "arguments": arguments });
        params["_meta"]["progressToken"] = json!(self.last_id + 1);
        if self.voice.asks_for_tasks() {
            params["task"] = json!({});
        }
        let answer = self.request("tools/call", params).await;
        self.follow(answer).await
    }

    /// Sends a request and returns its id, without waiting.
    pub async fn start(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        let params = self.voice.fill(params);
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// Waits for the answer to a request that was started.
    pub async fn finish(&mut self, id: i64) -> Answer {
        let is_question =
            |message: &Value| message.get("method").is_some() && message.get("id").is_some();
        let is_answer =
            |message: &Value| message.get("method").is_none() && message["id"] == json!(id);
        let either = |message: &Value| is_answer(message) || is_question(message);
        let message = self.expect(&format!("the answer to #{id}"), either).await;
        if is_question(&message) {
            let method = &message["method"];
            self.fail(format_args!(
                "the server asks {method}, and nobody answers: say who does with `answer`, \
                 or take the question with `expect_question`"
            ));
        }
        Answer::new(message, self.recording.clone())
    }

    /// Cancels a request, in the way of the revision and the transport.
    pub async fn cancel(&mut self, id: i64) {
        if !self.wire.hang_up(id) {
            self.notify("notifications/cancelled", json!({ "requestId": id }))
                .await;
        }
    }

    /// Answers to what an answer asks for, if it does and somebody answers.
    fn responses(&mut self, answer: &Answer) -> Option<Value> {
        let result = answer.result()?;
        if result["resultType"] != "input_required" {
            return None;
        }
        self.answers_to(&result["inputRequests"])
    }

    /// Answers to questions that come under keys.
    pub(super) fn answers_to(&mut self, questions: &Value) -> Option<Value> {
        let player = self.player.as_mut()?;
        let mut responses = Map::new();
        for (key, question) in questions.as_object().into_iter().flatten() {
            let method = question["method"].as_str().unwrap_or_default();
            responses.insert(key.clone(), player(method, &question["params"]));
        }
        Some(responses.into())
    }
}
