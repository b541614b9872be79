//! Following a task to its end.

use std::time::Duration;

use serde_json::{Value, json};

use super::Peer;
use crate::testing::Answer;

/// How often a task is looked at, before it is given up.
const MOST_LOOKS: usize = 10_000;

impl Peer {
    /// What comes of a call: of its task, if it became one.
    pub(super) async fn follow(&mut self, answer: Answer) -> Answer {
        let Some(result) = answer.result() else {
            return answer;
        };
        if result["resultType"] == "task" {
            let id = result["taskId"].clone();
            return self.look_in(id).await;
        }
        match result["task"]["taskId"].clone() {
            Value::Null => answer,
            id => self.request("tasks/result", json!({ "taskId": id })).await,
        }
    }

    /// Looks at a task now and then, and answers what it asks, until it has ended.
    async fn look_in(&mut self, id: Value) -> Answer {
        let mut answered = Vec::new();
        for _ in 0..MOST_LOOKS {
            let answer = self.request("tasks/get", json!({ "taskId": id })).await;
            let task = answer.expect_result();
            let outcome = match task["status"].as_str() {
                Some("completed") => json!({ "id": answer.json()["id"], "result": task["result"] }),
                Some("failed") => json!({ "id": answer.json()["id"], "error": task["error"] }),
                Some("cancelled") => {
                    let error = json!({ "code": -32603, "message": "the task was cancelled" });
                    json!({ "id": answer.json()["id"], "error": error })
                }
                _ => {
                    self.answer_task(&id, task, &mut answered).await;
                    let pause = task["pollIntervalMs"].as_u64().unwrap_or(1_000);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    continue;
                }
            };
            return Answer::new(outcome, self.recording.clone());
        }
        self.fail(format_args!("the task still runs after {MOST_LOOKS} looks"))
    }

    /// Brings answers to what a task asks and was not answered before.
    async fn answer_task(&mut self, id: &Value, task: &Value, answered: &mut Vec<String>) {
        let mut questions = task["inputRequests"].clone();
        if let Some(questions) = questions.as_object_mut() {
            questions.retain(|key, _| !answered.contains(key));
        }
        let Some(open) = questions.as_object().filter(|open| !open.is_empty()) else {
            return;
        };
        answered.extend(open.keys().cloned());
        match self.answers_to(&questions) {
            Some(responses) => {
                let params = json!({ "taskId": id, "inputResponses": responses });
                let taken = self.request("tasks/update", params).await;
                taken.expect_result();
            }
            None => self.fail("the task asks, and nobody answers: say who does with `answer`"),
        }
    }
}
