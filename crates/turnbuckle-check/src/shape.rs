//! The shape of every message of every revision, and what is wrong with a message that has another one.
//!
//! The facts are data: `shape/*.shapes`, a file for each revision, in a notation of our own that [`notation`] reads.
//! Knows nothing of order, meaning or transports; a field that no file names is allowed everywhere.

mod alternatives;
mod book;
mod envelope;
mod expression;
mod judge;
mod notation;
mod wording;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use self::book::Book;
use self::expression::OBJECT;
use self::judge::Judge;

pub(crate) use self::envelope::{Kind, envelope, messages};

/// Something about a message that is not as its revision has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flaw {
    /// Where it is, for example `result.tools[3].inputSchema.type`; empty for the message as a whole.
    pub(crate) path: String,
    /// What is expected, and what is there.
    pub(crate) what: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.what),
            path => write!(f, "`{path}`: {}", self.what),
        }
    }
}

/// Returns what is wrong with the parameters of a request; a method that nobody knows may have any object.
pub(crate) fn request(revision: Revision, message: &Value) -> Vec<Flaw> {
    let book = book::of(revision);
    let method = message["method"].as_str().and_then(|it| book.request(it));
    params(book, method.map(|method| &method.params), message)
}

/// Returns what is wrong with the parameters of a notification.
pub(crate) fn notification(revision: Revision, message: &Value) -> Vec<Flaw> {
    let book = book::of(revision);
    let params_of = |it| book.notification(it);
    params(
        book,
        message["method"].as_str().and_then(params_of),
        message,
    )
}

/// Returns what is wrong with the result of a method; the result of a method that nobody knows may be any object.
pub(crate) fn result(revision: Revision, method: &str, message: &Value) -> Vec<Flaw> {
    let book = book::of(revision);
    let shape = book
        .request(method)
        .map_or(&OBJECT, |method| &method.result);
    let mut flaws = Judge::of(book).member(message, "result", true, shape);
    // A result of another type than it may have has the fields of that type: they are no flaws of their own.
    let is_type = |flaw: &Flaw| flaw.path == "result.resultType";
    if message["result"].get("resultType").is_some() && flaws.iter().any(is_type) {
        flaws.retain(is_type);
    }
    flaws
}

/// Returns what is wrong with an error: the object, and the data that belongs to its code.
pub(crate) fn error(revision: Revision, message: &Value) -> Vec<Flaw> {
    let book = book::of(revision);
    let mut flaws = Judge::of(book).member(message, "error", true, book.shape("Error"));
    let error = &message["error"];
    if let Some(data) = error["code"].as_i64().and_then(|code| book.error(code)) {
        flaws.extend(Judge::within(book, "error").member(error, "data", true, data));
    }
    flaws
}

fn params(book: &Book, given: Option<&book::Params>, message: &Value) -> Vec<Flaw> {
    let (required, shape) = match given {
        Some(params) => (params.required, &params.shape),
        None => (false, &OBJECT),
    };
    Judge::of(book).member(message, "params", required, shape)
}
