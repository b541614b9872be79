//! A server's question to the client's model.

use std::{collections::HashSet, ops::Deref};

use turnbuckle_protocol::{
    RpcError,
    types::{
        ContentBlock, CreateMessageParams, CreateMessageResult, Role, SamplingMessage,
        ToolChoiceMode,
    },
};

/// The code by which a user's refusal is told to a server that waits.
const REFUSED: i64 = -1;

/// A server's question to the model: messages, and perhaps tools that the model may use.
///
/// Its fields are those of [`CreateMessageParams`]. The messages are in order: every tool use has its result.
#[derive(Clone, Debug)]
pub struct SampleRequest {
    params: CreateMessageParams,
}

impl SampleRequest {
    pub(super) fn new(params: CreateMessageParams, with_tools: bool) -> Result<Self, RpcError> {
        if !with_tools && (params.tools.is_some() || params.tool_choice.is_some()) {
            let message = "this client did not declare `sampling.tools`";
            return Err(RpcError::invalid_params(message));
        }
        check_order(&params.messages).map_err(RpcError::invalid_params)?;
        Ok(Self { params })
    }

    /// Refuses: the error to return when the user says no.
    pub fn refuse(&self) -> RpcError {
        RpcError::new(REFUSED, "the user refused the sampling request")
    }

    /// Returns the question itself.
    pub fn into_params(self) -> CreateMessageParams {
        self.params
    }

    pub(super) fn tool_choice_mode(&self) -> Option<ToolChoiceMode> {
        self.params.tool_choice.as_ref()?.mode
    }
}

impl Deref for SampleRequest {
    type Target = CreateMessageParams;

    fn deref(&self) -> &CreateMessageParams {
        &self.params
    }
}

/// Checks that a model did with tools what the server said.
pub(super) fn check_result(
    result: &CreateMessageResult,
    choice: Option<ToolChoiceMode>,
) -> Result<(), RpcError> {
    let uses_tools = uses(&result.content).next().is_some();
    match choice {
        Some(ToolChoiceMode::Required) if !uses_tools => {
            Err(RpcError::internal("the model used no tool, and it had to"))
        }
        Some(ToolChoiceMode::None) if uses_tools => {
            Err(RpcError::internal("the model used a tool, and it must not"))
        }
        _ => Ok(()),
    }
}

/// Checks that every tool use is followed by its result, and that results stand alone.
fn check_order(messages: &[SamplingMessage]) -> Result<(), String> {
    let mut open: Option<HashSet<&str>> = None;
    for message in messages {
        let results = results(&message.content).count();
        if results > 0 && message.role != Role::User {
            return Err("only a user message has tool results".to_owned());
        }
        if results > 0 && results != message.content.len() {
            return Err("a message with tool results has nothing else".to_owned());
        }
        match open.take() {
            Some(uses) => check_answers(uses, message)?,
            None if results > 0 => {
                return Err("a tool result answers no tool use before it".to_owned());
            }
            None => {}
        }
        open = open_uses(message)?;
    }
    match open {
        Some(_) => Err("a tool use has no result".to_owned()),
        None => Ok(()),
    }
}

/// Checks that a message has the result of each of these uses, and no other.
fn check_answers(mut uses: HashSet<&str>, message: &SamplingMessage) -> Result<(), String> {
    for answered in results(&message.content) {
        if !uses.remove(answered) {
            return Err("a tool result answers no tool use before it".to_owned());
        }
    }
    match uses.is_empty() {
        true => Ok(()),
        false => Err("a tool use has no result in the message after it".to_owned()),
    }
}

fn open_uses(message: &SamplingMessage) -> Result<Option<HashSet<&str>>, String> {
    let mut open = HashSet::new();
    for id in uses(&message.content) {
        if message.role != Role::Assistant {
            return Err("only the assistant uses tools".to_owned());
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

    fn said(role: &str, content: Value) -> Value {
        let mut message = json!({ "role": role });
        message["content"] = content;
        message
    }

    fn user(content: Value) -> Value {
        said("user", content)
    }

    fn assistant(content: Value) -> Value {
        said("assistant", content)
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
    fn conversations_in_order_pass() {
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
    fn tool_uses_without_their_results_do_not() {
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
