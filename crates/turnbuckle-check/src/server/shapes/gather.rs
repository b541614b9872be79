//! Makes sure that there is something to look at, whatever other rules have asked for.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::topic::Topic;
use crate::outcome::Unmet;
use crate::visit::Visit;

/// Why there is nothing of a topic to look at.
#[derive(Debug, Default)]
pub(crate) struct Gathered(HashMap<Topic, Unmet>);

impl Gathered {
    /// Asks for something of everything that the server has.
    pub(crate) async fn of(visit: &Visit) -> Self {
        let mut missing = Self::default();
        let Ok(discovered) = visit.discovered().await else {
            return missing;
        };
        missing.note(Topic::ToolList, discovered.tools.items().err());
        let calls = visit.trials().await.err();
        missing.note(Topic::ToolResult, calls.clone());
        missing.note(Topic::Content, calls);
        missing.note(Topic::Resources, discovered.resources.items().err());
        missing.note(Topic::Prompts, discovered.prompts.items().err());
        // What comes of these is for the rules that look; here it matters only that they were asked.
        let _ = visit.read().await;
        let _ = visit.prompted().await;
        let Ok(session) = visit.session().await else {
            return missing;
        };
        if session.capabilities().get("completions").is_some()
            && let Some(params) = discovered.prompts.iter().find_map(completion)
        {
            ask(visit, "completion/complete", params).await;
        }
        if session.speech.has_handshake() {
            ask(visit, "ping", json!({})).await;
        }
        missing
    }

    /// Returns why there is nothing of a topic.
    pub(super) fn why_not(&self, topic: Topic) -> Option<&Unmet> {
        self.0.get(&topic)
    }

    fn note(&mut self, topic: Topic, why: Option<Unmet>) {
        if let Some(why) = why {
            self.0.insert(topic, why.aside());
        }
    }
}

async fn ask(visit: &Visit, method: &str, params: Value) {
    if let Ok(session) = visit.session().await {
        let _ = session.ask(method, params).await;
    }
}

/// Returns what asks for completions of the first argument of a prompt.
fn completion(prompt: &Value) -> Option<Value> {
    let argument = prompt["arguments"].get(0)?["name"].as_str()?;
    let prompt = json!({ "type": "ref/prompt", "name": prompt["name"].as_str()? });
    Some(json!({ "ref": prompt, "argument": { "name": argument, "value": "" } }))
}
