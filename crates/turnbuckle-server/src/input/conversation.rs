//! What a conversation must look like before a model may go on with it.

use std::collections::BTreeSet;

use turnbuckle_protocol::types::{ContentBlock, Role, SamplingMessage};

/// Checks that every use of a tool is answered by the very next message, which holds nothing else.
///
/// Providers of models refuse a conversation that breaks this, and say so in words that help nobody.
pub(super) fn check(messages: &[SamplingMessage]) -> Result<(), String> {
    let mut open = BTreeSet::new();
    for message in messages {
        let results = results(message);
        if !(open.is_empty() && results.is_empty()) {
            answers(message, &results, &open)?;
        }
        open = uses(message);
    }
    match open.first() {
        Some(id) => Err(format!("the tool use {id:?} has no result")),
        None => Ok(()),
    }
}

fn answers(
    message: &SamplingMessage,
    results: &[&str],
    open: &BTreeSet<&str>,
) -> Result<(), String> {
    if message.role != Role::User || results.len() != message.content.len() {
        return Err("tool results stand alone, in the user message after their uses".to_owned());
    }
    let answered: BTreeSet<_> = results.iter().copied().collect();
    if answered.len() != results.len() {
        return Err("a tool use has two results".to_owned());
    }
    match open.symmetric_difference(&answered).next() {
        Some(id) => Err(format!("the tool use {id:?} and its result do not match")),
        None => Ok(()),
    }
}

fn results(message: &SamplingMessage) -> Vec<&str> {
    let blocks = message.content.iter();
    let ids = blocks.filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(&*result.tool_use_id),
        _ => None,
    });
    ids.collect()
}

fn uses(message: &SamplingMessage) -> BTreeSet<&str> {
    let blocks = message.content.iter();
    let ids = blocks.filter_map(|block| match block {
        ContentBlock::ToolUse(used) => Some(&*used.id),
        _ => None,
    });
    ids.collect()
}
