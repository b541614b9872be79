//! What came of a request.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::recording::Recording;

/// The answer to a request: a result or an error.
///
/// What is asked of it and is not there fails the test, and shows the whole exchange.
#[derive(Clone)]
pub struct Answer {
    message: Value,
    recording: Recording,
}

impl Answer {
    pub(super) fn new(message: Value, recording: Recording) -> Self {
        Self { message, recording }
    }

    /// The whole message.
    pub fn json(&self) -> &Value {
        &self.message
    }

    /// The result, if there is one.
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
            None => self.fail("a result was expected, and there is none"),
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
                "the error {code} was expected, and it is {}",
                error["code"]
            )),
            None => self.fail(format_args!(
                "the error {code} was expected, and there is a result"
            )),
        }
    }

    /// What a tool says of its failure: the text of a result that is marked as an error.
    ///
    /// # Panics
    ///
    /// If the tool did not fail, or the request did.
    #[track_caller]
    pub fn expect_failure(&self) -> String {
        if self.expect_result()["isError"] != true {
            self.fail("the tool was expected to fail, and it did not");
        }
        self.text()
    }

    /// The text of a tool's result; several blocks are joined by line breaks, other content is left out, and so is a
    /// block that only repeats the structured content beside others.
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
            let said = serde_json::from_str::<Value>(text).ok();
            said.is_some() && said.as_ref() == result.get("structuredContent")
        };
        let own = texts
            .iter()
            .copied()
            .filter(|text| texts.len() == 1 || !repeats(text));
        own.collect::<Vec<_>>().join("\n")
    }

    /// The structured content of a tool's result, read into a type; `Value` fits all.
    ///
    /// # Panics
    ///
    /// If there is none, or if it does not fit.
    #[track_caller]
    pub fn structured<T: DeserializeOwned>(&self) -> T {
        let Some(structured) = self.expect_result().get("structuredContent") else {
            self.fail("structured content was expected, and there is none")
        };
        match serde_json::from_value(structured.clone()) {
            Ok(value) => value,
            Err(error) => self.fail(format_args!("the structured content does not fit: {error}")),
        }
    }

    #[track_caller]
    fn fail(&self, why: impl fmt::Display) -> ! {
        self.recording.fail(why)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}
