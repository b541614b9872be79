//! Encodes requests: the envelope, `_meta`, and the headers that repeat parts of them.

use std::borrow::Cow;

use http::header::{HeaderName, HeaderValue};
use serde::Serialize;
use turnbuckle_protocol::{
    Revision, VersionedPayload,
    codec::headers::encode,
    meta::{Meta, TraceContext, keys},
    types::LogLevel,
};

use crate::{lifecycle::RevisionRules, transport::OutgoingRequest};

/// Fills in the headers and the body of a request with an id. `meta` contains the members that the caller adds.
pub(crate) fn fill(
    request: &mut OutgoingRequest<'_>,
    params: &impl Serialize,
    log_level: Option<LogLevel>,
    meta: Option<&Meta>,
) -> Result<(), serde_json::Error> {
    request.headers = mcp_headers(&request.rules, request.method.name, request.name);
    request.headers.extend_from_slice(&request.param_headers);
    request.body = message(request, params, log_level, meta)?;
    Ok(())
}

/// Serializes a request; its parameters must be an object without `_meta`.
fn message(
    request: &OutgoingRequest<'_>,
    params: &impl Serialize,
    log_level: Option<LogLevel>,
    meta: Option<&Meta>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(256 + request.rules.common_meta.len());
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    request.id.write(&mut out);
    out.extend_from_slice(br#","method":"#);
    write_word(&mut out, request.method.name);
    let before_params = out.len();
    out.extend_from_slice(br#","params":{"#);
    let start = out.len();
    write_meta(&mut out, request, log_level, meta)?;
    let without_params = out.len();
    if without_params > start {
        out.push(b',');
    }
    let object = out.len();
    serde_json::to_writer(&mut out, params)?;
    match &out[object..] {
        // Without parameters, the comma is removed too.
        b"{}" | b"null" => out.truncate(without_params),
        _ => {
            // The opening brace is already written.
            out.remove(object);
            out.pop();
        }
    }
    if out.len() == start {
        out.truncate(before_params);
    } else {
        out.push(b'}');
    }
    out.push(b'}');
    join_lines(&mut out);
    Ok(out)
}

/// Writes `"_meta":{…}`, or nothing if it would be empty.
fn write_meta(
    out: &mut Vec<u8>,
    request: &OutgoingRequest<'_>,
    log_level: Option<LogLevel>,
    meta: Option<&Meta>,
) -> Result<(), serde_json::Error> {
    let before = out.len();
    out.extend_from_slice(br#""_meta":{"#);
    let start = out.len();
    out.extend_from_slice(request.rules.common_meta.as_bytes());
    let next = |out: &mut Vec<u8>| {
        if out.len() > start {
            out.push(b',');
        }
    };
    let has_progress_token = request.progress_guard.is_some();
    if has_progress_token {
        next(out);
        write_word(out, keys::PROGRESS_TOKEN);
        out.push(b':');
        request.id.write(out);
    }
    let is_added = |key| meta.is_some_and(|meta| meta.get(key).is_some());
    let per_request = request.rules.log_level_per_request && !is_added(keys::LOG_LEVEL);
    if let Some(level) = log_level.filter(|_| per_request) {
        next(out);
        write_word(out, keys::LOG_LEVEL);
        out.push(b':');
        write_word(out, level.as_str());
    }
    for (key, value) in extra_meta(meta, has_progress_token) {
        next(out);
        serde_json::to_writer(&mut *out, key)?;
        out.push(b':');
        serde_json::to_writer(&mut *out, value)?;
    }
    if out.len() > start {
        out.push(b'}');
    } else {
        out.truncate(before);
    }
    Ok(())
}

/// A request with raw parameters, for a revision.
pub(crate) struct RawRequest<'a> {
    pub(crate) method: &'a str,
    /// A JSON object without `_meta`.
    pub(crate) params: &'a str,
    /// The members of `_meta` that the revision requires, and those that the caller adds, without braces.
    pub(crate) common_meta: &'a str,
    pub(crate) meta: &'a str,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) param_headers: &'a [(HeaderName, HeaderValue)],
    /// Headers for servers of every revision.
    pub(crate) headers: &'a [(HeaderName, HeaderValue)],
}

/// Fills in the headers and the body of a request with raw parameters. The error is a reason.
pub(crate) fn fill_raw(
    request: &mut OutgoingRequest<'_>,
    raw: &RawRequest<'_>,
) -> Result<(), &'static str> {
    request.headers.clear();
    request.headers.extend_from_slice(raw.headers);
    if request.rules.mcp_headers {
        let method = if request.method.name == raw.method {
            HeaderValue::from_static(request.method.name)
        } else {
            let method = HeaderValue::from_str(raw.method);
            method.map_err(|_| "its method cannot be sent in a header")?
        };
        request.headers.push((METHOD, method));
        request.headers.extend(request.name.and_then(name_header));
        request.headers.extend_from_slice(raw.param_headers);
    }
    request.body = raw_message(request, raw).ok_or("its parameters are not an object")?;
    Ok(())
}

/// Writes a request with raw parameters; returns `None` if they are not an object.
fn raw_message(request: &OutgoingRequest<'_>, raw: &RawRequest<'_>) -> Option<Vec<u8>> {
    let params = object_members(raw.params)?;
    let capacity = 192 + raw.common_meta.len() + raw.meta.len() + params.len();
    let mut out = Vec::with_capacity(capacity);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    request.id.write(&mut out);
    out.extend_from_slice(br#","method":"#);
    write_text(&mut out, raw.method);
    out.extend_from_slice(br#","params":{"#);
    let start = out.len();
    write_raw_meta(&mut out, request, raw);
    if out.len() > start && !params.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(params.as_bytes());
    out.extend_from_slice(b"}}");
    join_lines(&mut out);
    Some(out)
}

/// Writes `"_meta":{…}`, or nothing if it would be empty.
fn write_raw_meta(out: &mut Vec<u8>, request: &OutgoingRequest<'_>, raw: &RawRequest<'_>) {
    let before = out.len();
    out.extend_from_slice(br#""_meta":{"#);
    let start = out.len();
    let next = |out: &mut Vec<u8>| {
        if out.len() > start {
            out.push(b',');
        }
    };
    out.extend_from_slice(raw.common_meta.as_bytes());
    if request.progress_guard.is_some() {
        next(out);
        write_word(out, keys::PROGRESS_TOKEN);
        out.push(b':');
        request.id.write(out);
    }
    let per_request = request.rules.log_level_per_request;
    if let Some(level) = raw.log_level.filter(|_| per_request) {
        next(out);
        write_word(out, keys::LOG_LEVEL);
        out.push(b':');
        write_word(out, level.as_str());
    }
    if !raw.meta.trim().is_empty() {
        next(out);
        out.extend_from_slice(raw.meta.as_bytes());
    }
    if out.len() > start {
        out.push(b'}');
    } else {
        out.truncate(before);
    }
}

/// Returns a notification with raw parameters, a JSON object.
pub(crate) fn raw_notification(method: &str, params: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + method.len() + params.len());
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    write_text(&mut out, method);
    if object_members(params) != Some("") {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params.as_bytes());
    }
    out.push(b'}');
    join_lines(&mut out);
    out
}

/// Returns the text between the braces of a JSON object.
fn object_members(json: &str) -> Option<&str> {
    let members = json.trim().strip_prefix('{')?.strip_suffix('}')?;
    Some(members.trim())
}

/// Writes any string.
fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("serializing a string does not fail");
}

/// Writes a string of the protocol, which needs no escapes.
fn write_word(out: &mut Vec<u8>, word: &'static str) {
    out.push(b'"');
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

/// Returns the members that a caller adds, without those that the client sets itself, and without invalid trace
/// contexts.
fn extra_meta(
    meta: Option<&Meta>,
    has_progress_token: bool,
) -> impl Iterator<Item = (&str, &serde_json::Value)> {
    let trace = meta
        .and_then(|meta| TraceContext::new(meta.traceparent(), meta.tracestate(), meta.baggage()));
    let trace = trace.unwrap_or_default();
    let added = meta.into_iter().flat_map(Meta::iter);
    added.filter(move |(key, _)| match *key {
        keys::PROGRESS_TOKEN => !has_progress_token,
        // In a session, a server that supports both eras would take the request for a modern one.
        keys::PROTOCOL_VERSION | keys::CLIENT_INFO | keys::CLIENT_CAPABILITIES => false,
        keys::TRACEPARENT => trace.traceparent().is_some(),
        keys::TRACESTATE => trace.tracestate().is_some(),
        keys::BAGGAGE => trace.baggage().is_some(),
        _ => true,
    })
}

/// Replaces line breaks by spaces: in JSON they occur only between tokens.
pub(crate) fn join_lines(json: &mut [u8]) {
    for byte in json {
        // Written unconditionally, so that the compiler can vectorize the loop.
        *byte = match *byte {
            b'\n' | b'\r' => b' ',
            other => other,
        };
    }
}

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The headers of one message, without duplicates; the transport adds its own.
pub(crate) type HeaderList = Vec<(HeaderName, HeaderValue)>;

/// Returns the headers of a request: the method, and the name of the target. The [`version`] header is added later.
fn mcp_headers(rules: &RevisionRules, method: &'static str, name: Option<&str>) -> HeaderList {
    let mut headers = HeaderList::new();
    if rules.mcp_headers {
        headers.push((METHOD, HeaderValue::from_static(method)));
        headers.extend(name.and_then(name_header));
    }
    headers
}

/// Returns the header with the name of the target. An encoded name is always a valid header value.
fn name_header(name: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderValue::from_str(&encode(name)).ok()?;
    Some((NAME, name))
}

/// Returns the names of those headers, if the revision has them.
pub(crate) fn lifecycle_headers(rules: &RevisionRules) -> &'static [HeaderName] {
    static NAMES: [HeaderName; 2] = [METHOD, NAME];
    if rules.mcp_headers { &NAMES } else { &[] }
}

/// Returns the headers of a message that is not a request: only the protocol version, if the revision has that header.
pub(crate) fn version_header(rules: &RevisionRules) -> HeaderList {
    version(rules).into_iter().collect()
}

/// Returns the protocol version header, if the revision has it.
pub(crate) fn version(rules: &RevisionRules) -> Option<(HeaderName, HeaderValue)> {
    let version = rules.version_header.as_ref()?;
    Some((VERSION, version.clone()))
}

/// Parameters that can be sent in any revision.
pub(crate) trait ToRevision: Serialize + Clone {
    /// Returns the parameters, downgraded to a revision.
    fn to_revision(&self, to: Revision) -> Cow<'_, Self>;
}

impl<P: Serialize + VersionedPayload + Clone> ToRevision for P {
    fn to_revision(&self, to: Revision) -> Cow<'_, Self> {
        let mut params = self.clone();
        params.downgrade_to(to);
        Cow::Owned(params)
    }
}
