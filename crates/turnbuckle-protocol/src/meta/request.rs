//! The keys of `_meta` in a request, read without copying.

use std::borrow::Cow;

use super::keys;
use crate::{
    RequestId, RpcError,
    jsonrpc::{Params, RawObject, string_value},
};

/// The keys that the specification defines in the `_meta` of a request, borrowed from the JSON text.
///
/// Unknown keys are skipped. The implementation info and the capabilities of the client stay raw JSON text. A known
/// key with the value null counts as absent; a duplicate key is an error. [`TraceContext`](super::TraceContext)
/// validates the trace keys.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RequestMeta<'a> {
    /// The revision of the request; present on every modern one.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The implementation info of the client.
    pub client_info: Option<&'a str>,
    /// The capabilities of the client; present on every modern request.
    pub client_capabilities: Option<&'a str>,
    /// The minimum level of log messages, not validated yet.
    pub log_level: Option<Cow<'a, str>>,
    /// The progress token of the request.
    pub progress_token: Option<RequestId>,
    /// The parent of the W3C trace context.
    pub traceparent: Option<Cow<'a, str>>,
    /// The state of the W3C trace context.
    pub tracestate: Option<Cow<'a, str>>,
    /// The W3C baggage.
    pub baggage: Option<Cow<'a, str>>,
}

impl<'a> RequestMeta<'a> {
    /// Reads the `_meta` of parameters, if they have one.
    pub fn from_params(params: &Params<'a>) -> Result<Self, RpcError> {
        match params.meta_object()? {
            Some(meta) => Self::from_object(&meta),
            None => Ok(Self::default()),
        }
    }

    /// Parses the raw text of a `_meta` object.
    pub fn parse(meta: &'a str) -> Result<Self, RpcError> {
        Self::from_object(&RawObject::parse(meta)?)
    }

    fn from_object(meta: &RawObject<'a>) -> Result<Self, RpcError> {
        let mut read = Self::default();
        for (key, value) in meta.members().filter(|(_, value)| *value != "null") {
            match &*key {
                keys::PROTOCOL_VERSION => read.protocol_version = Some(text(&key, value)?),
                keys::CLIENT_INFO => read.client_info = Some(value),
                keys::CLIENT_CAPABILITIES => read.client_capabilities = Some(value),
                keys::LOG_LEVEL => read.log_level = Some(text(&key, value)?),
                keys::PROGRESS_TOKEN => read.progress_token = Some(token(&key, value)?),
                // An invalid trace context does not invalidate the request.
                keys::TRACEPARENT => read.traceparent = string_value(value),
                keys::TRACESTATE => read.tracestate = string_value(value),
                keys::BAGGAGE => read.baggage = string_value(value),
                _ => {}
            }
        }
        Ok(read)
    }
}

fn text<'a>(key: &str, value: &'a str) -> Result<Cow<'a, str>, RpcError> {
    string_value(value).ok_or_else(|| RpcError::invalid_params(format!("`{key}` must be a string")))
}

fn token(key: &str, value: &str) -> Result<RequestId, RpcError> {
    RequestId::from_json(value)
        .map_err(|_| RpcError::invalid_params(format!("`{key}` must be a string or an integer")))
}
