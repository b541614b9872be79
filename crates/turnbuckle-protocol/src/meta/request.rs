//! The keys of a request's `_meta`, read in place.

use std::borrow::Cow;

use super::keys;
use crate::{
    RequestId, RpcError,
    jsonrpc::{Object, Params, string_value},
};

/// What the specification defines in the `_meta` of a request, borrowed from its JSON text.
///
/// Nothing is built, and unknown keys are skipped. Whoever needs the identity or the capabilities of the client
/// parses the raw text it finds here. A known key that is null counts as absent; a key that comes twice is an error.
/// [`TraceContext`](super::TraceContext) says what of the trace keys is well formed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RequestMeta<'a> {
    /// The revision of the request; present on every modern one.
    pub protocol_version: Option<Cow<'a, str>>,
    /// Who asks.
    pub client_info: Option<&'a str>,
    /// What the asking client can do; present on every modern request.
    pub client_capabilities: Option<&'a str>,
    /// From which level on log messages are wanted, not yet checked.
    pub log_level: Option<Cow<'a, str>>,
    /// What progress notifications of this request are to bear.
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
    pub fn of(params: &Params<'a>) -> Result<Self, RpcError> {
        match params.meta_object()? {
            Some(meta) => Self::from_object(&meta),
            None => Ok(Self::default()),
        }
    }

    /// Reads the raw text of a `_meta` object.
    pub fn read(meta: &'a str) -> Result<Self, RpcError> {
        Self::from_object(&Object::parse(meta)?)
    }

    fn from_object(meta: &Object<'a>) -> Result<Self, RpcError> {
        let mut read = Self::default();
        for (key, value) in meta.members().filter(|(_, value)| *value != "null") {
            match &*key {
                keys::PROTOCOL_VERSION => read.protocol_version = Some(text(&key, value)?),
                keys::CLIENT_INFO => read.client_info = Some(value),
                keys::CLIENT_CAPABILITIES => read.client_capabilities = Some(value),
                keys::LOG_LEVEL => read.log_level = Some(text(&key, value)?),
                keys::PROGRESS_TOKEN => read.progress_token = Some(token(&key, value)?),
                // A trace that nobody can read is no reason to refuse the request.
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
