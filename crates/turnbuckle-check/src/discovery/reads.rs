//! What reading resources and getting prompts gives.

use serde_json::{Map, Value, json};

use crate::outcome::Unmet;
use crate::session::{Answer, Session};

/// How many of a list are looked at.
const LOOKED_AT: usize = 10;
/// The largest resource that is read, in bytes, as far as the server tells.
const LARGEST: u64 = 1024 * 1024;

/// Something of a list that was asked for, and what came of it.
#[derive(Debug)]
pub(crate) struct Read {
    /// What the list says of it.
    pub(crate) listed: Value,
    /// The answer.
    pub(crate) answer: Result<Answer, Unmet>,
}

impl Read {
    /// Returns the answer with its result, if it is a result that asks for nothing more.
    pub(crate) fn result(&self) -> Option<(&Answer, &Value)> {
        let answer = self.answer.as_ref().ok()?;
        let result = answer.value.get("result")?;
        is_complete(result).then_some((answer, result))
    }
}

/// Says whether a result is one, rather than a question or the promise of one.
pub(crate) fn is_complete(result: &Value) -> bool {
    matches!(result["resultType"].as_str(), None | Some("complete"))
}

/// Reads the first resources of a list.
pub(crate) async fn read_resources(session: &Session, list: &[Value]) -> Vec<Read> {
    let small = |listed: &&Value| listed["size"].as_u64().is_none_or(|size| size <= LARGEST);
    let mut read = Vec::new();
    for listed in list.iter().filter(small).take(LOOKED_AT) {
        let params = json!({ "uri": listed["uri"] });
        read.push(Read {
            listed: listed.clone(),
            answer: session.ask("resources/read", params).await,
        });
    }
    read
}

/// Gets the first prompts of a list, with a text for every argument that is required.
pub(crate) async fn get_prompts(session: &Session, list: &[Value]) -> Vec<Read> {
    let mut read = Vec::new();
    for listed in list.iter().take(LOOKED_AT) {
        let arguments: Map<_, _> = required(listed)
            .map(|name| (name.to_owned(), json!("check")))
            .collect();
        let mut params = json!({ "name": listed["name"] });
        if !arguments.is_empty() {
            params["arguments"] = arguments.into();
        }
        read.push(Read {
            listed: listed.clone(),
            answer: session.ask("prompts/get", params).await,
        });
    }
    read
}

/// Returns the names of the arguments that a prompt requires.
pub(crate) fn required(prompt: &Value) -> impl Iterator<Item = &str> {
    let arguments = prompt["arguments"].as_array().into_iter().flatten();
    arguments
        .filter(|argument| argument["required"] == true)
        .filter_map(|argument| argument["name"].as_str())
}
