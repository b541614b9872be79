//! Puts requests into bytes: the envelope, `_meta`, and the headers that repeat parts of them.

use http::header::{HeaderName, HeaderValue};
use serde::Serialize;
use turnbuckle_protocol::RequestId;
use turnbuckle_protocol::codec::headers::encode;
use turnbuckle_protocol::meta::{Meta, TraceContext, keys};
use turnbuckle_protocol::types::LogLevel;

use crate::lifecycle::Rules;

/// What goes into the `_meta` of one request beside what is in all of them.
#[derive(Debug, Default)]
pub(crate) struct Extra<'a> {
    /// Asks for progress, under this token.
    pub(crate) progress_token: Option<&'a RequestId>,
    /// From which level on log messages are wanted.
    pub(crate) log_level: Option<LogLevel>,
    /// What the caller adds.
    pub(crate) meta: Option<&'a Meta>,
}

/// Writes a request; its parameters must be an object and have no `_meta` of their own.
pub(crate) fn request(
    id: &RequestId,
    method: &'static str,
    params: &impl Serialize,
    rules: &Rules,
    extra: &Extra<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(256 + rules.stamp.len());
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.extend_from_slice(br#","method":"#);
    write_word(&mut out, method);
    let before_params = out.len();
    out.extend_from_slice(br#","params":{"#);
    let begun = out.len();
    write_meta(&mut out, rules, extra)?;
    let without_params = out.len();
    if without_params > begun {
        out.push(b',');
    }
    let object = out.len();
    serde_json::to_writer(&mut out, params)?;
    match &out[object..] {
        // Nothing to add: the comma goes too.
        b"{}" | b"null" => out.truncate(without_params),
        _ => {
            // The brace that opens it is there already.
            out.remove(object);
            out.pop();
        }
    }
    if out.len() == begun {
        out.truncate(before_params);
    } else {
        out.push(b'}');
    }
    out.push(b'}');
    join_lines(&mut out);
    Ok(out)
}

/// Writes `"_meta":{…}`, or nothing if there is nothing to say.
fn write_meta(
    out: &mut Vec<u8>,
    rules: &Rules,
    extra: &Extra<'_>,
) -> Result<(), serde_json::Error> {
    let before = out.len();
    out.extend_from_slice(br#""_meta":{"#);
    let begun = out.len();
    out.extend_from_slice(rules.stamp.as_bytes());
    let next = |out: &mut Vec<u8>| {
        if out.len() > begun {
            out.push(b',');
        }
    };
    if let Some(token) = extra.progress_token {
        next(out);
        write_word(out, keys::PROGRESS_TOKEN);
        out.push(b':');
        token.write(out);
    }
    let added = |key| extra.meta.is_some_and(|meta| meta.get(key).is_some());
    let per_request = rules.log_level_per_request && !added(keys::LOG_LEVEL);
    if let Some(level) = extra.log_level.filter(|_| per_request) {
        next(out);
        write_word(out, keys::LOG_LEVEL);
        out.push(b':');
        write_word(out, level.as_str());
    }
    for (key, value) in passed_on(extra) {
        next(out);
        serde_json::to_writer(&mut *out, key)?;
        out.push(b':');
        serde_json::to_writer(&mut *out, value)?;
    }
    match out.len() > begun {
        true => out.push(b'}'),
        false => out.truncate(before),
    }
    Ok(())
}

/// Writes a word of the protocol, none of which needs escapes.
fn write_word(out: &mut Vec<u8>, word: &'static str) {
    out.push(b'"');
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

/// What a caller adds, without what the client says itself, and without a trace that is none.
fn passed_on<'a>(extra: &Extra<'a>) -> impl Iterator<Item = (&'a str, &'a serde_json::Value)> {
    let trace = extra
        .meta
        .and_then(|meta| TraceContext::new(meta.traceparent(), meta.tracestate(), meta.baggage()));
    let trace = trace.unwrap_or_default();
    let progress_said = extra.progress_token.is_some();
    let added = extra.meta.into_iter().flat_map(Meta::iter);
    added.filter(move |(key, _)| match *key {
        keys::PROGRESS_TOKEN => !progress_said,
        // Where a session remembers it, a server that speaks both eras would take it for a request of the newer one.
        keys::PROTOCOL_VERSION | keys::CLIENT_INFO | keys::CLIENT_CAPABILITIES => false,
        keys::TRACEPARENT => trace.traceparent().is_some(),
        keys::TRACESTATE => trace.tracestate().is_some(),
        keys::BAGGAGE => trace.baggage().is_some(),
        _ => true,
    })
}

/// Turns line ends into spaces: in JSON they can only stand between tokens.
fn join_lines(json: &mut [u8]) {
    for byte in json {
        // Written in any case, so that the compiler takes many bytes at once.
        *byte = match *byte {
            b'\n' | b'\r' => b' ',
            other => other,
        };
    }
}

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The headers of one message, each name once: those of its transport come on top when it is sent.
pub(crate) type HeaderList = Vec<(HeaderName, HeaderValue)>;

/// Makes the headers of a request: method, and the name of what is asked for. Which [`version`] is spoken comes on top.
pub(crate) fn headers(rules: &Rules, method: &'static str, name: Option<&str>) -> HeaderList {
    let mut headers = HeaderList::new();
    if rules.mirrored {
        headers.push((METHOD, HeaderValue::from_static(method)));
        // What `encode` makes is always a header value.
        let name = name.and_then(|name| HeaderValue::from_str(&encode(name)).ok());
        headers.extend(name.map(|name| (NAME, name)));
    }
    headers
}

/// Names those headers, where there are any.
pub(crate) fn own_headers(rules: &Rules) -> &'static [HeaderName] {
    static MIRRORED: [HeaderName; 2] = [METHOD, NAME];
    match rules.mirrored {
        true => &MIRRORED,
        false => &[],
    }
}

/// Makes the headers of a message that is no request: only which revision is spoken, where that is said.
pub(crate) fn version_header(rules: &Rules) -> HeaderList {
    version(rules).into_iter().collect()
}

/// Says which revision is spoken, where that is said.
pub(crate) fn version(rules: &Rules) -> Option<(HeaderName, HeaderValue)> {
    let version = rules.version_header.as_ref()?;
    Some((VERSION, version.clone()))
}
