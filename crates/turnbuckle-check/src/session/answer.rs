//! What came back for a request.

use serde_json::Value;

use super::Pending;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::tape::{Head, Tape};

/// What came back for a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The message; null if there was none, which happens on HTTP only.
    pub(crate) value: Value,
    /// The status, on HTTP.
    pub(crate) status: Option<u16>,
    /// The head of the response, on HTTP.
    pub(crate) head: Option<Head>,
    /// What was heard between the request and its answer.
    pub(crate) before: Vec<usize>,
    /// The entry of the request.
    pub(crate) sent: Option<usize>,
    /// The entry of the answer.
    pub(crate) received: Option<usize>,
}

impl Answer {
    pub(super) fn new(
        tape: &Tape,
        pending: &Pending,
        received: Option<usize>,
        before: Vec<usize>,
    ) -> Self {
        if let (Some(received), sent @ Some(_)) = (received, pending.sent) {
            tape.amend(received, |entry| entry.answers = sent);
        }
        let message = received.and_then(|number| tape.entry(number).json());
        let head = pending.head.and_then(|number| tape.entry(number).head);
        Self {
            value: message.unwrap_or_default(),
            status: pending.status,
            head,
            before,
            sent: pending.sent,
            received: received.or(pending.head),
        }
    }

    /// Returns the result; an error in its place counts as broken.
    pub(crate) fn result(&self) -> Result<&Value, Unmet> {
        match self.value.get("result") {
            Some(result) => Ok(result),
            None => Err(self.broken(format!("{} instead of a result", self.describe()))),
        }
    }

    /// Returns the code of the error; a result in its place counts as broken.
    pub(crate) fn error(&self) -> Result<i64, Unmet> {
        match self.value["error"]["code"].as_i64() {
            Some(code) => Ok(code),
            None => Err(self.broken(format!("{} instead of an error", self.describe()))),
        }
    }

    /// Makes sure that it is an error with one of these codes.
    pub(crate) fn expect_error(&self, codes: &[i64]) -> Outcome {
        let code = self.error()?;
        match codes.contains(&code) {
            true => self.seen(),
            false => {
                let wanted: Vec<_> = codes.iter().map(i64::to_string).collect();
                Err(self.broken(format!(
                    "the error {code} instead of {}",
                    wanted.join(" or ")
                )))
            }
        }
    }

    /// Returns the value of a header of the response.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.as_ref()?.header(name)
    }

    /// Says in a few words what it is.
    pub(crate) fn describe(&self) -> String {
        if let Some(error) = self.value.get("error") {
            let message = error["message"].as_str().unwrap_or_default();
            return format!("the error {} “{message}”", error["code"]);
        }
        if self.value.get("result").is_some() {
            return "a result".to_owned();
        }
        match self.status {
            Some(status) => format!("HTTP status {status} without a message"),
            None => "something that is no answer".to_owned(),
        }
    }

    /// Returns the entries that show it.
    pub(crate) fn entries(&self) -> impl Iterator<Item = usize> + use<> {
        self.sent.into_iter().chain(self.received)
    }

    /// A rule is kept, as this answer shows.
    pub(crate) fn seen(&self) -> Outcome {
        Seen::at(self.entries())
    }

    /// A rule is broken, as this answer shows.
    pub(crate) fn broken(&self, what: impl Into<String>) -> Unmet {
        Unmet::broken(what, self.entries())
    }
}
