//! Sampling: requests of the server to the client's model.

use std::{collections::HashSet, ops::Deref};

use turnbuckle_protocol::{
    RpcError,
    types::{
        ContentBlock, CreateMessageParams, CreateMessageResult, Role, SamplingMessage,
        ToolChoiceMode,
    },
};

/// The error code for a request that the user rejected.
const USER_REJECTED: i64 = -1;

/// A sampling request: messages for the model, and optionally tools.
///
/// Its fields are those of [`CreateMessageParams`]. The order of messages is validated: every tool use has its result.
#[derive(Clone, Debug)]
pub struct SamplingRequest {
    params: CreateMessageParams,
}

impl SamplingRequest {
    pub(super) fn new(params: CreateMessageParams, with_tools: bool) -> Result<Self, RpcError> {
        if !with_tools && (params.tools.is_some() || params.tool_choice.is_some()) {
            let message = "this client did not declare `sampling.tools`";
            return Err(RpcError::invalid_params(message));
        }
        check_order(&params.messages).map_err(RpcError::invalid_params)?;
        Ok(Self { params })
    }

    /// Returns the error for a request that the user rejected.
    pub fn user_rejected(&self) -> RpcError {
        RpcError::new(USER_REJECTED, "the user rejected the sampling request")
    }

    /// Returns the parameters.
    pub fn into_params(self) -> CreateMessageParams {
        self.params
    }

    pub(super) fn tool_choice_mode(&self) -> Option<ToolChoiceMode> {
        self.params.tool_choice.as_ref()?.mode
    }
}

impl Deref for SamplingRequest {
    type Target = CreateMessageParams;

    fn deref(&self) -> &CreateMessageParams {
        &self.params
    }
}

/// Checks that the model respected the tool choice.
pub(super) fn check_result(
    result: &CreateMessageResult,
    choice: Option<ToolChoiceMode>,
) -> Result<(), RpcError> {
    let uses_tools = uses(&result.content).next().is_some();
    match choice {
        Some(ToolChoiceMode::Required) if !uses_tools => Err(RpcError::internal(
            "the model used no tool, but a tool was required",
        )),
        Some(ToolChoiceMode::None) if uses_tools => Err(RpcError::internal(
            "the model used a tool, but tools were not allowed",
        )),
        _ => Ok(()),
    }
}

/// Checks that every tool use is followed by its result, and that results are not mixed with other content.
fn check_order(messages: &[SamplingMessage]) -> Result<(), String> {
    let mut open: Option<HashSet<&str>> = None;
    for message in messages {
        let results = results(&message.content).count();
        if results > 0 && message.role != Role::User {
            return Err("only a user message may have tool results".to_owned());
        }
        if results > 0 && results != message.content.len() {
            return Err("a message with tool results must not have other content".to_owned());
        }
        match open.take() {
            Some(uses) => check_results(uses, message)?,
            None if results > 0 => {
                return Err("a tool result does not match a preceding tool use".to_owned());
            }
            None => {}
        }
        open = unanswered_tool_uses(message)?;
    }
    match open {
        Some(_) => Err("a tool use without a result".to_owned()),
        None => Ok(()),
    }
}

/// Checks that a message has exactly the results of these tool uses.
fn check_results(mut uses: HashSet<&str>, message: &SamplingMessage) -> Result<(), String> {
    for tool_use_id in results(&message.content) {
        if !uses.remove(tool_use_id) {
            return Err("a tool result does not match a preceding tool use".to_owned());
        }
    }
    if uses.is_empty() {
        Ok(())
    } else {
        Err("a tool use without a result in the next message".to_owned())
    }
}

fn unanswered_tool_uses(message: &SamplingMessage) -> Result<Option<HashSet<&str>>, String> {
    let mut open = HashSet::new();
    for id in uses(&message.content) {
        if message.role != Role::Assistant {
            return Err("only an assistant message may have tool uses".to_owned());
        }
        if !open.insert(id) {
            return Err("two tool uses have the same id".to_owned());
        }
    }
    Ok((!open.is_empty()).then_some(open))
}

fn uses(content: &[ContentBlock]) -> impl Iterator<Item = &str> {
    content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(tool_use) => Some(&*tool_use.id),
        _ => None,
    })
}

fn results(content: &[ContentBlock]) -> impl Iterator<Item = &str> {
    content.iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(&*result.tool_use_id),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn order(messages: Value) -> Result<(), String> {
        let messages: Vec<SamplingMessage> = serde_json::from_value(messages).unwrap();
        check_order(&messages)
    }

    fn message_of(role: &str, content: Value) -> Value {
        let mut message = json!({ "role": role });
        message["content"] = content;
        message
    }

    fn user(content: Value) -> Value {
        message_of("user", content)
    }

    fn assistant(content: Value) -> Value {
        message_of("assistant", content)
    }

    fn text() -> Value {
        json!({ "type": "text", "text": "hi" })
    }

    fn uses(id: &str) -> Value {
        json!({ "type": "tool_use", "id": id, "name": "look", "input": {} })
    }

    fn result(id: &str) -> Value {
        json!({ "type": "tool_result", "toolUseId": id, "content": [] })
    }

    #[test]
    fn valid_conversations_are_accepted() {
        for messages in [
            json!([]),
            json!([user(text()), assistant(text())]),
            json!([
                user(text()),
                assistant(json!([text(), uses("a")])),
                user(result("a"))
            ]),
            json!([
                user(text()),
                assistant(json!([uses("a"), uses("b")])),
                user(json!([result("b"), result("a")])),
                assistant(uses("a")),
                user(result("a")),
                assistant(text()),
            ]),
        ] {
            assert_eq!(order(messages.clone()), Ok(()), "{messages}");
        }
    }

    #[test]
    fn tool_uses_without_results_are_rejected() {
        for messages in [
            json!([assistant(uses("a"))]),
            json!([assistant(uses("a")), user(text())]),
            json!([assistant(uses("a")), assistant(text()), user(result("a"))]),
            json!([assistant(json!([uses("a"), uses("b")])), user(result("a"))]),
            json!([assistant(json!([uses("a"), uses("a")])), user(result("a"))]),
            json!([assistant(uses("a")), user(json!([result("a"), text()]))]),
            json!([
                assistant(uses("a")),
                user(json!([result("a"), result("a")]))
            ]),
            json!([
                assistant(uses("a")),
                user(json!([result("a"), result("b")]))
            ]),
            json!([assistant(uses("a")), assistant(result("a"))]),
            json!([user(result("a"))]),
            json!([user(uses("a")), user(result("a"))]),
        ] {
            assert!(order(messages.clone()).is_err(), "{messages}");
        }
    }
}
