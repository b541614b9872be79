//! Responses to a test client.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;
use turnbuckle_protocol::json;

use super::recording::Recording;

/// The response to a request: a result or an error.
///
/// A failed expectation fails the test with the transcript.
#[derive(Clone)]
pub struct PeerResponse {
    message: Value,
    recording: Recording,
}

impl PeerResponse {
    pub(super) fn new(message: Value, recording: Recording) -> Self {
        Self { message, recording }
    }

    /// The whole message.
    pub fn json(&self) -> &Value {
        &self.message
    }

    /// The result as JSON, if there is one: of any method, with every member.
    pub fn result(&self) -> Option<&Value> {
        self.message.get("result")
    }

    /// The JSON-RPC error, if there is one.
    pub fn error(&self) -> Option<&Value> {
        self.message.get("error")
    }

    /// The result.
    ///
    /// # Panics
    ///
    /// If there is an error instead.
    #[track_caller]
    pub fn expect_result(&self) -> &Value {
        match self.result() {
            Some(result) => result,
            None => self.fail("expected a result, got an error"),
        }
    }

    /// The JSON-RPC error with this code.
    ///
    /// # Panics
    ///
    /// If there is a result, or another error.
    #[track_caller]
    pub fn expect_error(&self, code: i64) -> &Value {
        match self.error() {
            Some(error) if error["code"] == code => error,
            Some(error) => self.fail(format_args!(
                "expected error {code}, got error {}",
                error["code"]
            )),
            None => self.fail(format_args!("expected error {code}, got a result")),
        }
    }

    /// Returns the error message of a tool: the text of an `isError` result.
    ///
    /// # Panics
    ///
    /// If the tool did not fail, or the request did.
    #[track_caller]
    pub fn expect_tool_error(&self) -> String {
        if self.expect_result()["isError"] != true {
            self.fail("expected a tool error, got a success");
        }
        self.text()
    }

    /// Returns the text of a tool's result. Text blocks are joined with line breaks. Other content, and a block that
    /// repeats the structured content next to others, is left out.
    ///
    /// # Panics
    ///
    /// If the request failed.
    #[track_caller]
    pub fn text(&self) -> String {
        let result = self.expect_result();
        let blocks = result["content"].as_array().into_iter().flatten();
        let texts: Vec<_> = blocks.filter_map(|block| block["text"].as_str()).collect();
        let repeats = |text: &str| {
            let parsed = serde_json::from_str::<Value>(text).ok();
            parsed.is_some() && parsed.as_ref() == result.get("structuredContent")
        };
        let shown_texts = texts
            .iter()
            .copied()
            .filter(|text| texts.len() == 1 || !repeats(text));
        shown_texts.collect::<Vec<_>>().join("\n")
    }

    /// Deserializes the structured content of a tool's result, into the type that the tool returns or any other.
    ///
    /// # Panics
    ///
    /// If there is none, or it cannot be deserialized.
    #[track_caller]
    pub fn structured<T: DeserializeOwned>(&self) -> T {
        let Some(structured) = self.expect_result().get("structuredContent") else {
            self.fail("expected structured content, got none")
        };
        match json::from_value(structured) {
            Ok(value) => value,
            Err(error) => self.fail(format_args!(
                "the structured content cannot be deserialized: {error}"
            )),
        }
    }

    #[track_caller]
    fn fail(&self, why: impl fmt::Display) -> ! {
        self.recording.fail(why)
    }
}

impl fmt::Debug for PeerResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}
