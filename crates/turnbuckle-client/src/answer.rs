//! What a server answered, still in its own bytes.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use turnbuckle_protocol::RpcError;
use turnbuckle_protocol::json::ReadError;
use turnbuckle_protocol::types::ResultType;

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What HTTP said about it, where it came that way.
    pub(crate) http: Option<HttpFacts>,
    /// The result, or the error.
    pub(crate) outcome: Result<RawResult, RpcError>,
}

/// A result as it came.
#[derive(Debug)]
pub(crate) struct RawResult {
    pub(crate) json: RawJson,
    kind: Option<ResultType>,
}

impl RawResult {
    /// Takes a result, and its kind where that is beyond doubt.
    pub(crate) fn new(json: RawJson, kind: Option<ResultType>) -> Self {
        Self { json, kind }
    }

    /// Takes it apart into its text and its kind.
    pub(crate) fn into_parts(self) -> Result<(RawJson, ResultType), ReadError> {
        let kind = match self.kind {
            Some(kind) => kind,
            None => ResultType::of(self.json.as_str())?,
        };
        Ok((self.json, kind))
    }
}

/// What HTTP said beside an answer.
#[derive(Clone, Debug)]
pub(crate) struct HttpFacts {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<Duration>,
}

/// JSON text that is part of a received buffer, and keeps it alive.
#[derive(Clone, Debug)]
pub(crate) struct RawJson(Bytes);

impl RawJson {
    /// Takes a part of a buffer; `text` must lie inside it.
    pub(crate) fn part(bytes: &Bytes, text: &str) -> Self {
        Self(bytes.slice_ref(text.as_bytes()))
    }

    /// Returns the text `{}`.
    pub(crate) fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        // It was cut from a `str`, so it is one; the check is cheap beside reading the JSON.
        std::str::from_utf8(&self.0).unwrap_or("null")
    }
}

impl From<String> for RawJson {
    /// Takes text that is known to be JSON.
    fn from(json: String) -> Self {
        Self(json.into())
    }
}
