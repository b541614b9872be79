//! The keys of a request's `_meta`, read in place.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::RequestId;

/// What the specification defines in the `_meta` of a request, borrowed from its JSON text.
///
/// Nothing is built, and unknown keys are skipped. Whoever needs the identity or the capabilities of the client
/// parses the raw text it finds here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RequestMeta<'a> {
    /// The revision of the request; present on every modern one.
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<Cow<'a, str>>,
    /// Who asks.
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<&'a RawValue>,
    /// What the asking client can do; present on every modern request.
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<&'a RawValue>,
    /// From which level on log messages are wanted, not yet checked.
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel")]
    pub log_level: Option<Cow<'a, str>>,
    /// What progress notifications of this request are to bear.
    #[serde(rename = "progressToken")]
    pub progress_token: Option<RequestId>,
    /// The parent of the W3C trace context.
    #[serde(borrow)]
    pub traceparent: Option<Cow<'a, str>>,
    /// The state of the W3C trace context.
    #[serde(borrow)]
    pub tracestate: Option<Cow<'a, str>>,
    /// The W3C baggage.
    #[serde(borrow)]
    pub baggage: Option<Cow<'a, str>>,
}

impl<'a> RequestMeta<'a> {
    /// Reads the raw text of a `_meta` object.
    pub fn read(meta: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(meta)
    }
}
