//! An exchange for people: without what is always the same, and without what is another every time.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Direction, Message};

/// What every request and every result repeats about its sender.
const REPEATED: [&str; 5] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/serverInfo",
];

/// What belongs to the author of the server, and is shown as it is.
const UNTOUCHED: [&str; 3] = ["arguments", "content", "structuredContent"];

/// What nobody can foresee, and nobody refers to.
const UNFORESEEN: [&str; 5] = [
    "requestState",
    "cursor",
    "nextCursor",
    "createdAt",
    "lastUpdatedAt",
];

/// Names things by the order in which they appear.
#[derive(Default)]
pub(super) struct Transcript {
    questions: HashMap<String, usize>,
    tasks: HashMap<String, usize>,
}

impl Transcript {
    /// One message as a line.
    pub(super) fn line(&mut self, message: &Message) -> String {
        let arrow = match message.direction {
            Direction::Sent => '→',
            Direction::Received => '←',
        };
        let json = &message.json;
        let mut line = arrow.to_string();
        if let Some(method) = message.method() {
            line = format!("{line} {method}");
        }
        if let Some(id) = json.get("id") {
            line = format!("{line} {}", self.id(message, id));
        }
        if let Some(error) = json.get("error") {
            line = format!("{line} error {}", self.tidy(error));
        }
        for member in ["params", "result"] {
            let tidied = json.get(member).map(|value| self.tidy(value));
            if let Some(value) = tidied.filter(|value| !is_empty(value)) {
                line = format!("{line} {value}");
            } else if member == "result" && json.get(member).is_some() {
                line.push_str(" {}");
            }
        }
        if json.as_object().is_none() {
            line = format!("{line} {json}");
        }
        line.push('\n');
        line
    }

    /// The client counts its requests; the server begins anywhere, so its questions are counted here.
    fn id(&mut self, message: &Message, id: &Value) -> String {
        let asked_by_server =
            message.method().is_some() == (message.direction == Direction::Received);
        if asked_by_server && !id.is_null() {
            let next = self.questions.len() + 1;
            let number = self.questions.entry(id.to_string()).or_insert(next);
            return format!("?{number}");
        }
        format!("#{id}")
    }

    fn tidy(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let tidied = members
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), self.member(key, value)?)));
                Value::Object(tidied.collect())
            }
            Value::Array(items) => items.iter().map(|item| self.tidy(item)).collect(),
            other => other.clone(),
        }
    }

    fn member(&mut self, key: &str, value: &Value) -> Option<Value> {
        match (key, value) {
            (key, _) if UNTOUCHED.contains(&key) => Some(value.clone()),
            (key, Value::String(_)) if UNFORESEEN.contains(&key) => Some("…".into()),
            ("progressToken", token) => Some(self.token(token)),
            ("taskId", Value::String(id)) => Some(self.task(id)),
            ("taskIds", Value::Array(ids)) => Some(
                ids.iter()
                    .filter_map(Value::as_str)
                    .map(|id| self.task(id))
                    .collect(),
            ),
            ("_meta", Value::Object(meta)) => {
                let mut kept: Map<_, _> = meta.clone();
                kept.retain(|key, _| !REPEATED.contains(&key.as_str()));
                let tidied = self.tidy(&Value::Object(kept));
                (!is_empty(&tidied)).then_some(tidied)
            }
            _ => Some(self.tidy(value)),
        }
    }

    /// The server's questions are their own tokens.
    fn token(&self, token: &Value) -> Value {
        let question = self.questions.get(&token.to_string());
        question.map_or(token.clone(), |number| format!("?{number}").into())
    }

    fn task(&mut self, id: &str) -> Value {
        let next = self.tasks.len() + 1;
        let number = self.tasks.entry(id.to_owned()).or_insert(next);
        format!("task-{number}").into()
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}
