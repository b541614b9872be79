//! Results that request input first (since 2026-07-28).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use super::{CreateMessageParams, ElicitParams, EmptyParams, JsonObject, ResultType};
use crate::{json, meta::Meta};

/// Input requests, by the key of their responses.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// Input responses by key, each the bare result of its request.
pub type InputResponses = JsonObject;

/// A result that requires input: the client responds to the input requests and retries the request.
///
/// Its `resultType` is [`InputRequiredResult::RESULT_TYPE`]; the server adds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// The input requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input_requests: InputRequests,
    /// The state to send back unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl InputRequiredResult {
    /// The `resultType` of such a result.
    pub const RESULT_TYPE: ResultType = ResultType::InputRequired;

    /// Creates a result with input requests.
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

/// An input request: a request without envelope.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "method", content = "params")]
#[non_exhaustive]
pub enum InputRequest {
    /// Sampling.
    #[serde(rename = "sampling/createMessage")]
    CreateMessage(CreateMessageParams),
    /// Roots.
    #[serde(rename = "roots/list")]
    ListRoots(EmptyParams),
    /// Elicitation.
    #[serde(rename = "elicitation/create")]
    Elicit(ElicitParams),
    /// An unknown request.
    #[serde(untagged)]
    Unknown {
        /// The method.
        method: String,
        /// The parameters.
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
