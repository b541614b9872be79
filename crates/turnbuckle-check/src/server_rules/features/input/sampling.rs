//! Questions to the model.

use std::collections::HashSet;

use serde_json::Value;

use crate::engine::{
    check_context::CheckContext,
    outcome::{Evidence, NotPassed, Outcome},
    transcript_query::{ObservedClientRequest, client_requests},
};

pub(super) fn tool_results(ctx: &CheckContext) -> Outcome {
    let with_tools: Vec<_> = samplings(ctx)
        .into_iter()
        .filter(|it| all_blocks(it).any(|block| is(block, "tool_use") || is(block, "tool_result")))
        .collect();
    if with_tools.is_empty() {
        return Err(NotPassed::not_applicable(
            "no model was told of tools that it has used",
        ));
    }
    for client_request in &with_tools {
        if let Some(observed) = unbalanced(&client_request.params["messages"]) {
            return Err(NotPassed::violation(observed, [client_request.at]));
        }
    }
    Evidence::from_entries(
        with_tools
            .iter()
            .map(|client_request| client_request.at)
            .take(3),
    )
}

pub(super) async fn context(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let asked = samplings(ctx);
    if asked.is_empty() {
        return Err(tool_runs.none("asks the model anything"));
    }
    for client_request in &asked {
        let expected = &client_request.params["includeContext"];
        if expected == "thisServer" || expected == "allServers" {
            let observed = format!(
                "`includeContext` is {expected}, and the client has not declared `sampling.context`"
            );
            return Err(NotPassed::violation(observed, [client_request.at]));
        }
    }
    Evidence::from_entries(asked.iter().map(|client_request| client_request.at).take(3))
}

fn samplings(ctx: &CheckContext) -> Vec<ObservedClientRequest> {
    let mut asked = client_requests(&ctx.transcript);
    asked.retain(|client_request| client_request.method == "sampling/createMessage");
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

fn all_blocks(client_request: &ObservedClientRequest) -> impl Iterator<Item = &Value> {
    let messages = client_request.params["messages"].as_array();
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
