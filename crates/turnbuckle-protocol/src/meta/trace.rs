//! W3C Trace Context and Baggage in `_meta`.
//!
//! Values that do not follow the grammar are dropped: an invalid trace context does not invalidate a request.

use serde::Serialize;

use super::{Meta, RequestMeta, keys};

/// The maximum length of a `traceparent` of a future version, in bytes.
const MAX_PARENT_BYTES: usize = 256;
/// The maximum length of a `tracestate` in bytes, which every implementation must propagate.
const MAX_STATE_BYTES: usize = 512;
/// The maximum number of entries of a `tracestate`.
const MAX_VENDORS: usize = 32;
/// The maximum length of a `baggage` in bytes, which every implementation must propagate.
const MAX_BAGGAGE_BYTES: usize = 8192;
/// The maximum number of entries of a `baggage`.
const MAX_BAGGAGE_ITEMS: usize = 180;

/// The position of a request in a distributed trace, and its baggage.
///
/// ```
/// use turnbuckle_protocol::meta::TraceContext;
///
/// let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let trace = TraceContext::new(Some(parent), None, Some("user=ada")).unwrap();
/// assert_eq!(trace.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
/// assert!(TraceContext::new(Some("00-nonsense"), None, None).is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TraceContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baggage: Option<String>,
}

impl TraceContext {
    /// Creates a context from the valid values, or returns `None` if there are none. The state is valid only together
    /// with a parent.
    pub fn new(
        traceparent: Option<&str>,
        tracestate: Option<&str>,
        baggage: Option<&str>,
    ) -> Option<Self> {
        let traceparent = traceparent.filter(|text| is_parent(text));
        let tracestate = tracestate.filter(|text| traceparent.is_some() && is_state(text));
        let baggage = baggage.filter(|text| is_baggage(text));
        (traceparent.is_some() || baggage.is_some()).then(|| Self {
            traceparent: traceparent.map(str::to_owned),
            tracestate: tracestate.map(str::to_owned),
            baggage: baggage.map(str::to_owned),
        })
    }

    /// Reads the trace context of a request.
    pub fn from_meta(meta: &RequestMeta<'_>) -> Option<Self> {
        Self::new(
            meta.traceparent.as_deref(),
            meta.tracestate.as_deref(),
            meta.baggage.as_deref(),
        )
    }

    /// Returns `traceparent`: version, trace id, span id and flags.
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Returns `tracestate`: vendor data of the trace.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Returns `baggage`: names and values of the application.
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Returns the trace id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent()?.get(3..35)
    }

    /// Returns the id of the span that caused the request: 16 hexadecimal digits.
    pub fn parent_id(&self) -> Option<&str> {
        self.traceparent()?.get(36..52)
    }

    /// Returns whether the caller may have recorded the trace.
    pub fn is_sampled(&self) -> bool {
        let flags = self.traceparent().and_then(|parent| parent.get(53..55));
        flags.is_some_and(|flags| u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1))
    }

    /// Writes the context into the `_meta` of a message that this request causes.
    pub fn write_to(&self, meta: &mut Meta) {
        for (key, value) in [
            (keys::TRACEPARENT, self.traceparent()),
            (keys::TRACESTATE, self.tracestate()),
            (keys::BAGGAGE, self.baggage()),
        ] {
            if let Some(value) = value {
                meta.insert_reserved(key, value);
            }
        }
    }
}

/// Returns whether the text is `version-trace-span-flags` in lower-case hexadecimal. Future versions may append more.
fn is_parent(text: &str) -> bool {
    let (Some(known), Some(more)) = (text.get(..55), text.get(55..)) else {
        return false;
    };
    let mut parts = known.split('-');
    let mut hex = |length: usize| {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        parts
            .next()
            .filter(|part| part.len() == length && part.bytes().all(is_digit))
    };
    let (Some(version), Some(trace), Some(span), Some(_flags)) = (hex(2), hex(32), hex(16), hex(2))
    else {
        return false;
    };
    let is_whole = match version {
        "ff" => false,
        "00" => more.is_empty(),
        _ => {
            text.len() <= MAX_PARENT_BYTES
                && (more.is_empty() || more.starts_with('-'))
                && more.bytes().all(|byte| byte.is_ascii_graphic())
        }
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    is_whole && !is_zero(trace) && !is_zero(span)
}

/// Returns whether the text is a comma-separated list of `key=value`.
fn is_state(text: &str) -> bool {
    let mut entries = 0;
    !text.is_empty()
        && text.len() <= MAX_STATE_BYTES
        && text.split(',').all(|entry| {
            // Empty entries are allowed and ignored.
            let entry = entry.trim_matches([' ', '\t']);
            entries += usize::from(!entry.is_empty());
            entry.is_empty() || is_vendor(entry)
        })
        && (1..=MAX_VENDORS).contains(&entries)
}

fn is_vendor(entry: &str) -> bool {
    let Some((key, value)) = entry.split_once('=') else {
        return false;
    };
    let is_key =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let begins_well = key
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit());
    begins_well
        && key.len() <= 256
        && key.bytes().all(is_key)
        && (1..=256).contains(&value.len())
        && value
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
}

/// Returns whether the text is a comma-separated list of `key=value;property`.
fn is_baggage(text: &str) -> bool {
    text.len() <= MAX_BAGGAGE_BYTES
        && text.split(',').count() <= MAX_BAGGAGE_ITEMS
        && text.split(',').all(is_item)
}

fn is_item(item: &str) -> bool {
    let mut parts = item.split(';');
    let is_pair = |part: &str, needs_value: bool| match part.split_once('=') {
        Some((key, value)) => is_token(trim(key)) && trim(value).bytes().all(is_baggage_byte),
        None => !needs_value && is_token(trim(part)),
    };
    parts.next().is_some_and(|pair| is_pair(pair, true)) && parts.all(|part| is_pair(part, false))
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Returns whether the text is an HTTP token.
fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// Returns whether a byte may occur in a value: visible ASCII except quotes, commas, semicolons and backslashes.
fn is_baggage_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}

#[cfg(test)]
mod tests;
