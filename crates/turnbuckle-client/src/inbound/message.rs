//! Parses received bytes into responses, requests and notifications.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use turnbuckle_protocol::{
    RequestId, RpcError,
    json::JsonError,
    jsonrpc::{Incoming, MalformedMessage, Message, parse},
    types::ResultType,
};

/// One message from the server.
#[derive(Debug)]
pub(crate) enum InboundMessage {
    /// The response to a request.
    Response {
        id: RequestId,
        outcome: Result<RawResult, RpcError>,
    },
    /// A response with both a result and an error, or with neither.
    InvalidResponse {
        id: Option<RequestId>,
        error: RpcError,
    },
    /// A server request.
    Request {
        id: RequestId,
        method: String,
        params: RawJson,
    },
    /// A notification.
    Notification { method: String, params: RawJson },
    /// An error response without a readable request id.
    ErrorWithoutId(RpcError),
    /// Not a valid message; it may have the id of a request.
    Malformed {
        id: Option<RequestId>,
        error: RpcError,
    },
}

/// Parses received bytes, and calls `each` with every message; only 2025-03-26 has batches.
pub(crate) fn read(bytes: &Bytes, mut each: impl FnMut(InboundMessage)) {
    match parse(bytes) {
        Ok(Incoming::One(message)) => each(to_inbound(bytes, message)),
        Ok(Incoming::Batch(messages)) => {
            for message in messages {
                each(match message {
                    Ok(message) => to_inbound(bytes, message),
                    Err(malformed) => malformed_message(malformed),
                });
            }
        }
        Err(malformed) => each(malformed_message(malformed)),
    }
}

fn to_inbound(bytes: &Bytes, message: Message<'_>) -> InboundMessage {
    match message {
        Message::Response(response) => InboundMessage::Response {
            id: response.id,
            outcome: response
                .outcome
                .map(|text| RawResult::new(RawJson::part(bytes, text), response.kind)),
        },
        Message::Request(request) => InboundMessage::Request {
            id: request.id,
            method: request.method.into_owned(),
            params: params(bytes, request.params.raw()),
        },
        Message::Notification(notification) => InboundMessage::Notification {
            method: notification.method.into_owned(),
            params: params(bytes, notification.params.raw()),
        },
        Message::ErrorWithoutId(error) => InboundMessage::ErrorWithoutId(error),
    }
}

/// Absent parameters are static text, which is not part of the buffer.
fn params(bytes: &Bytes, text: &str) -> RawJson {
    match text {
        "{}" => RawJson::empty_object(),
        _ => RawJson::part(bytes, text),
    }
}

fn malformed_message(malformed: MalformedMessage) -> InboundMessage {
    if malformed.is_response() {
        InboundMessage::InvalidResponse {
            id: malformed.id,
            error: malformed.error,
        }
    } else {
        InboundMessage::Malformed {
            id: malformed.id,
            error: malformed.error,
        }
    }
}

/// The response to a request, unparsed.
#[derive(Debug)]
pub(crate) struct RawResponse {
    /// The HTTP metadata, if it was received over HTTP.
    pub(crate) http: Option<HttpMetadata>,
    /// The result or the error.
    pub(crate) outcome: Result<RawResult, RpcError>,
}

/// An unparsed result.
#[derive(Debug)]
pub(crate) struct RawResult {
    pub(crate) json: RawJson,
    kind: Option<ResultType>,
}

impl RawResult {
    /// Creates a result, with its type if that is already known.
    pub(crate) fn new(json: RawJson, kind: Option<ResultType>) -> Self {
        Self { json, kind }
    }

    /// Returns the text and the type.
    pub(crate) fn into_parts(self) -> Result<(RawJson, ResultType), JsonError> {
        let kind = match self.kind {
            Some(kind) => kind,
            None => ResultType::from_result_json(self.json.as_str())?,
        };
        Ok((self.json, kind))
    }
}

/// The HTTP metadata of a response.
#[derive(Clone, Debug)]
pub(crate) struct HttpMetadata {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<Duration>,
}

/// JSON text that is part of a received buffer, and keeps the buffer alive.
#[derive(Clone, Debug)]
pub(crate) struct RawJson(Bytes);

impl RawJson {
    /// Creates a slice of a buffer; `text` must be part of it.
    pub(crate) fn part(bytes: &Bytes, text: &str) -> Self {
        Self(bytes.slice_ref(text.as_bytes()))
    }

    /// Returns the text `{}`.
    pub(crate) fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Returns the bytes of the text.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        // It was sliced from a `str`, so the check always succeeds; it is cheap compared to parsing.
        std::str::from_utf8(&self.0).unwrap_or("null")
    }
}

impl From<String> for RawJson {
    /// Creates it from text that must be JSON.
    fn from(json: String) -> Self {
        Self(json.into())
    }
}
