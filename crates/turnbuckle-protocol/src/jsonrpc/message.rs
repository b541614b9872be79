//! Received messages.

use std::borrow::Cow;

use super::{Params, RequestId, RpcError};
use crate::types::ResultType;

/// One message, or a batch.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and nearly always the large one"
)]
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A single message.
    One(Message<'a>),
    /// A batch, each message parsed on its own; never empty.
    ///
    /// Only revision 2025-03-26 allows batches; code that knows the revision decides.
    Batch(Vec<Result<Message<'a>, MalformedMessage>>),
}

/// A request, a notification, or a response.
#[derive(Debug)]
pub enum Message<'a> {
    /// Expects a response.
    Request(Request<'a>),
    /// Expects no response.
    Notification(Notification<'a>),
    /// Responds to a request of ours.
    Response(Response<'a>),
    /// An error without id: the peer could not read the id of a message of ours.
    ///
    /// Never respond to it: two peers that did would not stop.
    ErrorWithoutId(RpcError),
}

/// A call that expects a response.
#[derive(Debug)]
pub struct Request<'a> {
    /// The id to repeat in the response, in the bytes received.
    pub id: RequestId,
    /// The method, with escapes resolved.
    pub method: Cow<'a, str>,
    /// The parameters.
    pub params: Params<'a>,
}

/// A call without a response.
#[derive(Debug)]
pub struct Notification<'a> {
    /// The method, with escapes resolved.
    pub method: Cow<'a, str>,
    /// The parameters.
    pub params: Params<'a>,
}

/// The response to a request.
#[derive(Debug)]
pub struct Response<'a> {
    /// The id of the request.
    pub id: RequestId,
    /// The kind of the result; `None` for an error, and for an ambiguous kind: [`ResultType::from_result_json`]
    /// returns the reason.
    pub kind: Option<ResultType>,
    /// The result as raw JSON text, or the error.
    pub outcome: Result<&'a str, RpcError>,
}

/// Bytes that are not a valid message, and the error to report.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct MalformedMessage {
    /// The id, if it could be read unambiguously.
    pub id: Option<RequestId>,
    /// The error.
    pub error: RpcError,
    is_response: bool,
}

impl MalformedMessage {
    /// Describes a malformed request or unknown message.
    pub fn new(id: Option<RequestId>, error: RpcError) -> Self {
        Self {
            id,
            error,
            is_response: false,
        }
    }

    /// Describes a malformed response to a request of ours.
    pub fn for_response(id: Option<RequestId>, error: RpcError) -> Self {
        Self {
            id,
            error,
            is_response: true,
        }
    }

    /// Returns whether the message was a response.
    ///
    /// Then `id` is one of ours: report the error to the waiting caller, and send nothing back.
    pub fn is_response(&self) -> bool {
        self.is_response
    }
}
