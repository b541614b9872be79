//! Sampling: requests to the client's model.

use std::collections::BTreeSet;

use serde_json::Map;
use turnbuckle_protocol::types::{
    ClientCapabilities, ContentBlock, CreateMessageParams, ModelPreferences, Role,
    SamplingCapability, SamplingMessage, Tool, ToolChoice,
};

use super::ClientRequestError;

/// A sampling request.
#[derive(Debug, Clone)]
pub struct SamplingBuilder {
    params: CreateMessageParams,
}

impl SamplingBuilder {
    /// Creates a request with one user message and at most 1,000 tokens.
    pub fn text(prompt: impl Into<String>) -> Self {
        let message = SamplingMessage::user(prompt.into());
        Self {
            params: CreateMessageParams::new([message], 1_000),
        }
    }

    /// Creates a request with a list of messages.
    pub fn messages(messages: impl Into<Vec<SamplingMessage>>, max_tokens: u64) -> Self {
        Self {
            params: CreateMessageParams::new(messages, max_tokens),
        }
    }

    /// Sets the maximum number of tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.params.max_tokens = tokens;
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.params.system_prompt = Some(prompt.into());
        self
    }

    /// Sets the model preferences.
    #[must_use]
    pub fn preferences(mut self, preferences: ModelPreferences) -> Self {
        self.params.model_preferences = Some(preferences);
        self
    }

    /// Lets the model call tools. The client must support that.
    #[must_use]
    pub fn tools(mut self, tools: impl Into<Vec<Tool>>, choice: Option<ToolChoice>) -> Self {
        self.params.tools = Some(tools.into());
        self.params.tool_choice = choice;
        self
    }

    /// Returns the parameters, for options without a method here.
    pub fn params_mut(&mut self) -> &mut CreateMessageParams {
        &mut self.params
    }

    pub(super) fn required_capability(&self) -> ClientCapabilities {
        let sampling = SamplingCapability::default();
        ClientCapabilities::new().sampling(match self.params.tools {
            Some(_) => sampling.tools(Map::new()),
            None => sampling,
        })
    }

    pub(super) fn is_supported_by(&self, client: &ClientCapabilities) -> bool {
        match self.params.tools {
            Some(_) => client.can_sample_with_tools(),
            None => client.sampling.is_some(),
        }
    }

    pub(super) fn into_params(self) -> Result<CreateMessageParams, ClientRequestError> {
        check_tool_results(&self.params.messages)
            .map_err(|reason| ClientRequestError::InvalidRequest { reason })?;
        Ok(self.params)
    }
}

/// Checks that every tool use is followed by a message with exactly its result.
///
/// Model providers reject other sequences, with unhelpful errors.
fn check_tool_results(messages: &[SamplingMessage]) -> Result<(), String> {
    let mut open_uses = BTreeSet::new();
    for message in messages {
        let results = tool_results(message);
        if !(open_uses.is_empty() && results.is_empty()) {
            check_results(message, &results, &open_uses)?;
        }
        open_uses = tool_uses(message);
    }
    match open_uses.first() {
        Some(id) => Err(format!("the result of the tool use {id:?} is missing")),
        None => Ok(()),
    }
}

fn check_results(
    message: &SamplingMessage,
    results: &[&str],
    open_uses: &BTreeSet<&str>,
) -> Result<(), String> {
    if message.role != Role::User || results.len() != message.content.len() {
        return Err("tool results must be alone in the user message after their uses".to_owned());
    }
    let result_ids: BTreeSet<_> = results.iter().copied().collect();
    if result_ids.len() != results.len() {
        return Err("a tool use has two results".to_owned());
    }
    match open_uses.symmetric_difference(&result_ids).next() {
        Some(id) => Err(format!("the tool use {id:?} and its result do not match")),
        None => Ok(()),
    }
}

fn tool_results(message: &SamplingMessage) -> Vec<&str> {
    let blocks = message.content.iter();
    let ids = blocks.filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(&*result.tool_use_id),
        _ => None,
    });
    ids.collect()
}

fn tool_uses(message: &SamplingMessage) -> BTreeSet<&str> {
    let blocks = message.content.iter();
    let ids = blocks.filter_map(|block| match block {
        ContentBlock::ToolUse(used) => Some(&*used.id),
        _ => None,
    });
    ids.collect()
}
