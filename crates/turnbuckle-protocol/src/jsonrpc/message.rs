//! What a received message turns out to be.

use std::borrow::Cow;

use super::{Params, RequestId, RpcError};
use crate::types::ResultType;

/// One message, or several in an array.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and nearly always the large one"
)]
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A single message.
    One(Message<'a>),
    /// An array of messages, each judged on its own; never empty.
    ///
    /// Only revision 2025-03-26 has these: whoever knows the revision decides.
    Batch(Vec<Result<Message<'a>, Malformed>>),
}

/// A request, a notification, or an answer.
#[derive(Debug)]
pub enum Message<'a> {
    /// Expects an answer.
    Request(Request<'a>),
    /// Expects none.
    Notification(Notification<'a>),
    /// Answers a request of ours.
    Response(Response<'a>),
    /// An error that names no request: the peer could not read the id of something we sent.
    ///
    /// Never answer it: two peers that did would go on forever.
    Complaint(RpcError),
}

/// A call that wants an answer.
#[derive(Debug)]
pub struct Request<'a> {
    /// What the answer must carry, in the bytes received.
    pub id: RequestId,
    /// The method, with escapes resolved.
    pub method: Cow<'a, str>,
    /// The parameters.
    pub params: Params<'a>,
}

/// A call that wants no answer.
#[derive(Debug)]
pub struct Notification<'a> {
    /// The method, with escapes resolved.
    pub method: Cow<'a, str>,
    /// The parameters.
    pub params: Params<'a>,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Response<'a> {
    /// The request it answers.
    pub id: RequestId,
    /// The kind of the result; `None` for an error, and for a result whose kind is in doubt:
    /// [`ResultType::of`] says why.
    pub kind: Option<ResultType>,
    /// The result as raw JSON text, or the error.
    pub outcome: Result<&'a str, RpcError>,
}

/// Bytes that are no message, and what to say about them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Malformed {
    /// The id, where it could be read beyond doubt.
    pub id: Option<RequestId>,
    /// What is wrong.
    pub error: RpcError,
    answer: bool,
}

impl Malformed {
    /// Describes bytes that were meant as a request, or as nobody knows what.
    pub fn new(id: Option<RequestId>, error: RpcError) -> Self {
        Self {
            id,
            error,
            answer: false,
        }
    }

    /// Describes a broken answer to a request of ours.
    pub fn answer(id: Option<RequestId>, error: RpcError) -> Self {
        Self {
            id,
            error,
            answer: true,
        }
    }

    /// Says whether the message was meant as an answer.
    ///
    /// Then `id` is one of ours: report the error to whoever waits for it, and send nothing back.
    pub fn is_answer(&self) -> bool {
        self.answer
    }
}
