//! The parameters of a call of a tool, with arguments that are already written down.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use turnbuckle_protocol::method::TOOLS_CALL;
use turnbuckle_protocol::types::{
    CallToolParams, InputResponses, JsonObject, tasks::legacy::TaskMetadata,
};
use turnbuckle_protocol::{Revision, Versioned};

use crate::error::CallError;
use crate::lowered::Lowered;
use crate::rounds::Answerable;

/// What `tools/call` carries. The arguments are JSON text from the beginning: hardly anybody looks into them.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    tool: String,
    arguments: Option<Box<RawValue>>,
    /// What few calls have: answers to questions, or the wish for a task.
    more: Option<Box<CallToolParams>>,
}

impl ToolCall {
    /// Calls a tool with whatever the caller gave: an object, or nothing.
    pub(crate) fn new(
        tool: impl Into<String>,
        arguments: &impl Serialize,
    ) -> Result<Self, CallError> {
        let unsendable = |reason| CallError::Unsendable {
            method: TOOLS_CALL.name,
            reason,
        };
        let written = to_raw_value(arguments).map_err(|error| unsendable(error.to_string()))?;
        let arguments = match written.get().trim_start().bytes().next() {
            Some(b'{') => Some(written),
            Some(b'n') => None,
            _ => return Err(unsendable("the arguments are no object".to_owned())),
        };
        Ok(Self {
            tool: tool.into(),
            arguments,
            more: None,
        })
    }

    /// Returns the name of the tool.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Says whether it is to become a task.
    pub(crate) fn wants_task(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.task.is_some())
    }

    /// Asks for a task.
    pub(crate) fn ask_for_task(&mut self, wish: TaskMetadata) {
        self.more().task = Some(wish);
    }

    fn more(&mut self) -> &mut CallToolParams {
        let none = || Box::new(CallToolParams::new(""));
        self.more.get_or_insert_with(none)
    }

    /// Reads the arguments, for those who have to look into them.
    pub(super) fn arguments(&self) -> Option<JsonObject> {
        serde_json::from_str(self.arguments.as_ref()?.get()).ok()
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Written<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            arguments: Option<&'a RawValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            input_responses: Option<&'a InputResponses>,
            #[serde(skip_serializing_if = "Option::is_none")]
            request_state: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            task: Option<&'a TaskMetadata>,
        }
        let more = self.more.as_deref();
        let written = Written {
            name: &self.tool,
            arguments: self.arguments.as_deref(),
            input_responses: more.and_then(|more| more.input_responses.as_ref()),
            request_state: more.and_then(|more| more.request_state.as_deref()),
            task: more.and_then(|more| more.task.as_ref()),
        };
        written.serialize(serializer)
    }
}

impl Lowered for ToolCall {
    fn lowered(&self, to: Revision) -> Cow<'_, Self> {
        // The name and the arguments alone are the same in all revisions.
        if self.more.is_none() {
            return Cow::Borrowed(self);
        }
        let mut call = self.clone();
        call.more().lower(to);
        Cow::Owned(call)
    }
}

impl Answerable for ToolCall {
    fn answer(&mut self, responses: InputResponses, state: Option<String>) {
        self.more().answer(responses, state);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_written_as_the_protocol_has_it() {
        let mut call = ToolCall::new("echo", &json!({ "message": "a\nb" })).unwrap();
        call.more().request_state = Some("s".to_owned());
        call.ask_for_task(TaskMetadata::default());

        let written = serde_json::to_value(&call).unwrap();

        let mut params = call.more().clone();
        params.name = call.tool().to_owned();
        params.arguments = call.arguments();
        assert_eq!(written, serde_json::to_value(&params).unwrap());
        assert_eq!(written["arguments"], json!({ "message": "a\nb" }));
    }

    #[test]
    fn what_a_revision_does_not_know_is_left_out_of_a_copy() {
        let plain = ToolCall::new("echo", &json!({ "message": "hi" })).unwrap();
        let mut wish = plain.clone();
        wish.ask_for_task(TaskMetadata::default());
        let mut again = plain.clone();
        again.more().request_state = Some("s".to_owned());

        for revision in Revision::ALL {
            let written = |call: &ToolCall| serde_json::to_value(&*call.lowered(revision)).unwrap();
            assert!(matches!(plain.lowered(revision), Cow::Borrowed(_)));
            let known = revision == Revision::V2025_11_25;
            assert_eq!(written(&wish).get("task").is_some(), known, "{revision}");
            let known = revision == Revision::V2026_07_28;
            assert_eq!(
                written(&again).get("requestState").is_some(),
                known,
                "{revision}"
            );
        }
    }

    #[test]
    fn arguments_are_an_object_or_nothing() {
        let nothing = ToolCall::new("echo", &()).unwrap();

        assert_eq!(
            serde_json::to_value(&nothing).unwrap(),
            json!({ "name": "echo" })
        );
        for other in [json!([1]), json!("a"), json!(1), json!(true)] {
            assert!(ToolCall::new("echo", &other).is_err(), "{other}");
        }
    }
}
