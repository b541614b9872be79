//! Sampling requests.

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
        .filter(|it| {
            all_blocks(it)
                .any(|block| has_type(block, "tool_use") || has_type(block, "tool_result"))
        })
        .collect();
    if with_tools.is_empty() {
        return Err(NotPassed::not_applicable(
            "no sampling request has tool uses",
        ));
    }
    for client_request in &with_tools {
        if let Some((requirement, observed)) =
            tool_use_violation(&client_request.params["messages"])
        {
            let violation = NotPassed::violation(observed, [client_request.at]);
            return Err(violation.for_requirement(requirement));
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
    let samplings = samplings(ctx);
    if samplings.is_empty() {
        return Err(tool_runs.none("sends sampling requests"));
    }
    for client_request in &samplings {
        let context = &client_request.params["includeContext"];
        if context == "thisServer" || context == "allServers" {
            let observed = format!(
                "`includeContext` is {context}, but the client does not declare `sampling.context`"
            );
            return Err(NotPassed::violation(observed, [client_request.at]));
        }
    }
    Evidence::from_entries(
        samplings
            .iter()
            .map(|client_request| client_request.at)
            .take(3),
    )
}

fn samplings(ctx: &CheckContext) -> Vec<ObservedClientRequest> {
    let mut samplings = client_requests(&ctx.transcript);
    samplings.retain(|client_request| client_request.method == "sampling/createMessage");
    samplings
}

/// Returns the violation in the tool uses and their results, with the violated requirement.
fn tool_use_violation(messages: &Value) -> Option<(&'static str, String)> {
    const BALANCE: &str = "sampling.tool-result.balance";
    let mut open: HashSet<&str> = HashSet::new();
    for message in messages.as_array()? {
        let blocks: Vec<_> = blocks(message).collect();
        let results: Vec<_> = blocks
            .iter()
            .filter(|block| has_type(block, "tool_result"))
            .collect();
        if !results.is_empty() && results.len() < blocks.len() {
            let observed = "tool results are mixed with other content".to_owned();
            return Some(("sampling.tool-result.only", observed));
        }
        for result in results {
            let id = result["toolUseId"].as_str().unwrap_or_default();
            if !open.remove(id) {
                let observed =
                    format!("a result for {id:?}, which is not a tool use in the previous message");
                return Some(("sampling.tool-result.match", observed));
            }
        }
        if let Some(id) = open.iter().next() {
            let observed = format!("no result for the tool use {id:?} in the next message");
            return Some((BALANCE, observed));
        }
        let uses = blocks.iter().filter(|block| has_type(block, "tool_use"));
        open = uses.filter_map(|block| block["id"].as_str()).collect();
    }
    open.iter()
        .next()
        .map(|id| (BALANCE, format!("no result for the tool use {id:?}")))
}

fn all_blocks(client_request: &ObservedClientRequest) -> impl Iterator<Item = &Value> {
    let messages = client_request.params["messages"].as_array();
    messages.into_iter().flatten().flat_map(blocks)
}

/// Returns the blocks of a message, a single one or a list.
fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    let content = &message["content"];
    let list = content.as_array().map(Vec::as_slice);
    list.unwrap_or(std::slice::from_ref(content)).iter()
}

fn has_type(block: &Value, kind: &str) -> bool {
    block["type"] == kind
}
