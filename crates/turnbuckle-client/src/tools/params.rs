//! The parameters of a tool call, with serialized arguments.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use turnbuckle_protocol::{
    Revision, VersionedPayload,
    method::TOOLS_CALL,
    types::{CallToolParams, InputResponses, JsonObject, tasks::legacy::TaskMetadata},
};

use crate::{error::CallError, round_trips::AcceptsInputResponses, transport::encode::ToRevision};

/// The parameters of `tools/call`. The arguments are stored as JSON text, because they are rarely inspected.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    tool: String,
    arguments: Option<Box<RawValue>>,
    /// Rarely used parameters: input responses, or a task request.
    extra_params: Option<Box<CallToolParams>>,
}

impl ToolCall {
    /// Creates a call; the arguments must be an object or null.
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
            _ => return Err(unsendable("the arguments are not an object".to_owned())),
        };
        Ok(Self {
            tool: tool.into(),
            arguments,
            extra_params: None,
        })
    }

    /// Returns the name of the tool.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns whether a task is requested.
    pub(crate) fn wants_task(&self) -> bool {
        self.extra_params
            .as_ref()
            .is_some_and(|extra_params| extra_params.task.is_some())
    }

    /// Requests a task.
    pub(crate) fn request_task(&mut self, task: TaskMetadata) {
        self.extra_params().task = Some(task);
    }

    fn extra_params(&mut self) -> &mut CallToolParams {
        let none = || Box::new(CallToolParams::new(""));
        self.extra_params.get_or_insert_with(none)
    }

    /// Parses the arguments.
    pub(super) fn arguments(&self) -> Option<JsonObject> {
        serde_json::from_str(self.arguments.as_ref()?.get()).ok()
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct WireParams<'a> {
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
        let extra_params = self.extra_params.as_deref();
        let written = WireParams {
            name: &self.tool,
            arguments: self.arguments.as_deref(),
            input_responses: extra_params
                .and_then(|extra_params| extra_params.input_responses.as_ref()),
            request_state: extra_params
                .and_then(|extra_params| extra_params.request_state.as_deref()),
            task: extra_params.and_then(|extra_params| extra_params.task.as_ref()),
        };
        written.serialize(serializer)
    }
}

impl ToRevision for ToolCall {
    fn to_revision(&self, to: Revision) -> Cow<'_, Self> {
        // The name and the arguments are the same in all revisions.
        if self.extra_params.is_none() {
            return Cow::Borrowed(self);
        }
        let mut call = self.clone();
        call.extra_params().downgrade_to(to);
        Cow::Owned(call)
    }
}

impl AcceptsInputResponses for ToolCall {
    fn set_input_responses(&mut self, responses: InputResponses, state: Option<String>) {
        self.extra_params().set_input_responses(responses, state);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_call_serializes_like_the_protocol_type() {
        let mut call = ToolCall::new("echo", &json!({ "message": "a\nb" })).unwrap();
        call.extra_params().request_state = Some("s".to_owned());
        call.request_task(TaskMetadata::default());

        let written = serde_json::to_value(&call).unwrap();

        let mut params = call.extra_params().clone();
        params.name = call.tool().to_owned();
        params.arguments = call.arguments();
        assert_eq!(written, serde_json::to_value(&params).unwrap());
        assert_eq!(written["arguments"], json!({ "message": "a\nb" }));
    }

    #[test]
    fn members_outside_the_revision_are_left_out() {
        let plain = ToolCall::new("echo", &json!({ "message": "hi" })).unwrap();
        let mut task = plain.clone();
        task.request_task(TaskMetadata::default());
        let mut again = plain.clone();
        again.extra_params().request_state = Some("s".to_owned());

        for revision in Revision::ALL {
            let written =
                |call: &ToolCall| serde_json::to_value(&*call.to_revision(revision)).unwrap();
            assert!(matches!(plain.to_revision(revision), Cow::Borrowed(_)));
            let known = revision == Revision::V2025_11_25;
            assert_eq!(written(&task).get("task").is_some(), known, "{revision}");
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
