//! Results that ask before they answer (since 2026-07-28).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use super::{
    CreateMessageParams, ElicitParams, EmptyParams, JsonObject, ResultType, setters::setters,
};
use crate::{json, meta::Meta};

/// Open questions, by the key that their answers will bear.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// Answers by key: each the bare result of its question.
pub type InputResponses = JsonObject;

/// A result that is none yet: the client answers the questions and asks again.
///
/// Its `resultType` is [`InputRequiredResult::RESULT_TYPE`], written by whoever stamps results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// What the server wants to know.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input_requests: InputRequests,
    /// What the client has to send back, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl InputRequiredResult {
    /// The `resultType` of such a result.
    pub const RESULT_TYPE: ResultType = ResultType::InputRequired;

    /// Asks the client.
    pub fn new(input_requests: InputRequests) -> Self {
        Self {
            input_requests,
            ..Self::default()
        }
    }
}

setters!(InputRequiredResult {
    optional { request_state: String }
    plain { meta: Meta }
});

/// One question: a request without envelope.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "method", content = "params")]
#[non_exhaustive]
pub enum InputRequest {
    /// Ask the model.
    #[serde(rename = "sampling/createMessage")]
    CreateMessage(CreateMessageParams),
    /// List the roots.
    #[serde(rename = "roots/list")]
    ListRoots(EmptyParams),
    /// Ask the user.
    #[serde(rename = "elicitation/create")]
    Elicit(ElicitParams),
    /// A question this library does not know.
    #[serde(untagged)]
    Unknown {
        /// Its method.
        method: String,
        /// Its parameters.
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<Value>,
    },
}

impl InputRequest {
    /// Returns the method.
    pub fn method(&self) -> &str {
        match self {
            Self::CreateMessage(_) => "sampling/createMessage",
            Self::ListRoots(_) => "roots/list",
            Self::Elicit(_) => "elicitation/create",
            Self::Unknown { method, .. } => method,
        }
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            method: String,
            params: Option<Value>,
        }
        let Raw { method, params } = Raw::deserialize(deserializer)?;
        if !matches!(
            &*method,
            "sampling/createMessage" | "roots/list" | "elicitation/create"
        ) {
            return Ok(Self::Unknown { method, params });
        }
        let params = params.unwrap_or_else(|| Value::Object(JsonObject::new()));
        let request = match &*method {
            "sampling/createMessage" => json::from_value(&params).map(Self::CreateMessage),
            "roots/list" => json::from_value(&params).map(Self::ListRoots),
            _ => json::from_value(&params).map(Self::Elicit),
        };
        request.map_err(D::Error::custom)
    }
}
