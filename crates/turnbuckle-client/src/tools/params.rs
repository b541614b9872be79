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

/// What `tools/call` carries. The arguments are JSON text from the beginning: hardly anybody looks into them.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    /// All but the arguments.
    pub(crate) params: CallToolParams,
    arguments: Option<Box<RawValue>>,
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
            params: CallToolParams::new(tool),
            arguments,
        })
    }

    /// Returns the name of the tool.
    pub(crate) fn tool(&self) -> &str {
        &self.params.name
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
        let written = Written {
            name: &self.params.name,
            arguments: self.arguments.as_deref(),
            input_responses: self.params.input_responses.as_ref(),
            request_state: self.params.request_state.as_deref(),
            task: self.params.task.as_ref(),
        };
        written.serialize(serializer)
    }
}

impl Lowered for ToolCall {
    fn lowered(&self, to: Revision) -> Cow<'_, Self> {
        // The name and the arguments alone, as of nearly every call, are the same in all revisions.
        let CallToolParams {
            input_responses: None,
            request_state: None,
            task: None,
            ..
        } = &self.params
        else {
            let mut call = self.clone();
            call.params.lower(to);
            return Cow::Owned(call);
        };
        Cow::Borrowed(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_written_as_the_protocol_has_it() {
        let mut call = ToolCall::new("echo", &json!({ "message": "a\nb" })).unwrap();
        call.params.request_state = Some("s".to_owned());
        call.params.task = Some(TaskMetadata::default());

        let written = serde_json::to_value(&call).unwrap();

        let mut params = call.params.clone();
        params.arguments = call.arguments();
        assert_eq!(written, serde_json::to_value(&params).unwrap());
        assert_eq!(written["arguments"], json!({ "message": "a\nb" }));
    }

    #[test]
    fn what_a_revision_does_not_know_is_left_out_of_a_copy() {
        let plain = ToolCall::new("echo", &json!({ "message": "hi" })).unwrap();
        let mut wish = plain.clone();
        wish.params.task = Some(TaskMetadata::default());
        let mut again = plain.clone();
        again.params.request_state = Some("s".to_owned());

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
