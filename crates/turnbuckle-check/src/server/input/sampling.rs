//! Questions to the model.

use std::collections::HashSet;

use serde_json::Value;

use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::{Question, questions};
use crate::visit::Visit;

pub(super) fn tool_results(visit: &Visit) -> Outcome {
    let with_tools: Vec<_> = samplings(visit)
        .into_iter()
        .filter(|it| all_blocks(it).any(|block| is(block, "tool_use") || is(block, "tool_result")))
        .collect();
    if with_tools.is_empty() {
        return Err(Unmet::not_applicable(
            "no model was told of tools that it has used",
        ));
    }
    for question in &with_tools {
        if let Some(what) = unbalanced(&question.params["messages"]) {
            return Err(Unmet::broken(what, [question.at]));
        }
    }
    Seen::at(with_tools.iter().map(|question| question.at).take(3))
}

pub(super) async fn context(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let asked = samplings(visit);
    if asked.is_empty() {
        return Err(trials.none("asks the model anything"));
    }
    for question in &asked {
        let wanted = &question.params["includeContext"];
        if wanted == "thisServer" || wanted == "allServers" {
            let what = format!(
                "`includeContext` is {wanted}, and the client has not declared `sampling.context`"
            );
            return Err(Unmet::broken(what, [question.at]));
        }
    }
    Seen::at(asked.iter().map(|question| question.at).take(3))
}

fn samplings(visit: &Visit) -> Vec<Question> {
    let mut asked = questions(&visit.tape);
    asked.retain(|question| question.method == "sampling/createMessage");
    asked
}

/// Says what is wrong with the uses of tools and their results.
fn unbalanced(messages: &Value) -> Option<String> {
    let mut open: HashSet<&str> = HashSet::new();
    for message in messages.as_array()? {
        let blocks: Vec<_> = blocks(message).collect();
        let results: Vec<_> = blocks
            .iter()
            .filter(|block| is(block, "tool_result"))
            .collect();
        if !results.is_empty() && results.len() < blocks.len() {
            return Some("results of tools are mixed with something else".to_owned());
        }
        for result in results {
            let id = result["toolUseId"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Some(format!(
                    "a result for {id:?}, which is no use of a tool in the message before"
                ));
            }
        }
        if let Some(id) = open.iter().next() {
            return Some(format!(
                "no result for the use {id:?} in the message after it"
            ));
        }
        let uses = blocks.iter().filter(|block| is(block, "tool_use"));
        open = uses.filter_map(|block| block["id"].as_str()).collect();
    }
    open.iter()
        .next()
        .map(|id| format!("no result for the use {id:?}"))
}

fn all_blocks(question: &Question) -> impl Iterator<Item = &Value> {
    let messages = question.params["messages"].as_array();
    messages.into_iter().flatten().flat_map(blocks)
}

/// Returns the blocks of a message, which has one or a list of them.
fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    let content = &message["content"];
    let list = content.as_array().map(Vec::as_slice);
    list.unwrap_or(std::slice::from_ref(content)).iter()
}

fn is(block: &Value, kind: &str) -> bool {
    block["type"] == kind
}
