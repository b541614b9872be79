//! From received bytes to what they are: answers, requests, notifications.

use bytes::Bytes;
use turnbuckle_protocol::jsonrpc::{Incoming, Malformed, Message, parse};
use turnbuckle_protocol::{RequestId, RpcError};

use crate::answer::{RawJson, RawResult};

/// One message of the server's.
#[derive(Debug)]
pub(crate) enum Received {
    /// Answers a request of ours.
    Answer {
        id: RequestId,
        outcome: Result<RawResult, RpcError>,
    },
    /// Was meant as an answer, but is none: it has both a result and an error, or neither.
    BadAnswer {
        id: Option<RequestId>,
        error: RpcError,
    },
    /// Asks something of us.
    Request {
        id: RequestId,
        method: String,
        params: RawJson,
    },
    /// Tells us something.
    Notification { method: String, params: RawJson },
    /// Complains about something of ours whose id could not be read.
    Complaint(RpcError),
    /// Is no message at all; one that was meant as a request may have an id.
    Malformed {
        id: Option<RequestId>,
        error: RpcError,
    },
}

/// Reads what was received and hands out each message; only 2025-03-26 has more than one in an array.
pub(crate) fn read(bytes: &Bytes, mut each: impl FnMut(Received)) {
    match parse(bytes) {
        Ok(Incoming::One(message)) => each(owned(bytes, message)),
        Ok(Incoming::Batch(messages)) => {
            for message in messages {
                each(match message {
                    Ok(message) => owned(bytes, message),
                    Err(malformed) => broken(malformed),
                });
            }
        }
        Err(malformed) => each(broken(malformed)),
    }
}

fn owned(bytes: &Bytes, message: Message<'_>) -> Received {
    match message {
        Message::Response(response) => Received::Answer {
            id: response.id,
            outcome: response
                .outcome
                .map(|text| RawResult::new(RawJson::part(bytes, text), response.kind)),
        },
        Message::Request(request) => Received::Request {
            id: request.id,
            method: request.method.into_owned(),
            params: params(bytes, request.params.raw()),
        },
        Message::Notification(notification) => Received::Notification {
            method: notification.method.into_owned(),
            params: params(bytes, notification.params.raw()),
        },
        Message::Complaint(error) => Received::Complaint(error),
    }
}

/// Absent parameters are text of our own, which lies in no buffer.
fn params(bytes: &Bytes, text: &str) -> RawJson {
    match text {
        "{}" => RawJson::empty_object(),
        _ => RawJson::part(bytes, text),
    }
}

fn broken(malformed: Malformed) -> Received {
    match malformed.is_answer() {
        true => Received::BadAnswer {
            id: malformed.id,
            error: malformed.error,
        },
        false => Received::Malformed {
            id: malformed.id,
            error: malformed.error,
        },
    }
}
