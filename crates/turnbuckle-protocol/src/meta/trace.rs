//! W3C Trace Context and Baggage, as they travel in `_meta`.
//!
//! What does not follow their grammar is left out: a bad trace is no reason to refuse a request.

use serde::Serialize;

use super::{Meta, RequestMeta, keys};

/// The most bytes of a `traceparent` from a version that is not written yet.
const MOST_PARENT: usize = 256;
/// The most bytes of a `tracestate`: what everyone has to pass on.
const MOST_STATE: usize = 512;
/// The most entries of a `tracestate`.
const MOST_VENDORS: usize = 32;
/// The most bytes of a `baggage`: what everyone has to pass on.
const MOST_BAGGAGE: usize = 8192;
/// The most entries of a `baggage`.
const MOST_ITEMS: usize = 180;

/// Where a request belongs in a distributed trace, and what travels along.
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
    /// Keeps what is well formed and not too long; the state only counts beside a parent. Nothing left is `None`.
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

    /// Reads what a request says.
    pub fn of(meta: &RequestMeta<'_>) -> Option<Self> {
        Self::new(
            meta.traceparent.as_deref(),
            meta.tracestate.as_deref(),
            meta.baggage.as_deref(),
        )
    }

    /// The parent: version, trace, span and flags.
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// What vendors add to the parent.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Names and values that the application passes along.
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// The trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent()?.get(3..35)
    }

    /// The span that caused the request: 16 hexadecimal digits.
    pub fn parent_id(&self) -> Option<&str> {
        self.traceparent()?.get(36..52)
    }

    /// Says whether the caller may have recorded the trace.
    pub fn is_sampled(&self) -> bool {
        let flags = self.traceparent().and_then(|parent| parent.get(53..55));
        flags.is_some_and(|flags| u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1))
    }

    /// Writes it into the `_meta` of a message that is sent because of this one.
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

/// `version-trace-span-flags` in lower-case hexadecimal. A later version may add more after a dash.
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
            text.len() <= MOST_PARENT
                && (more.is_empty() || more.starts_with('-'))
                && more.bytes().all(|byte| byte.is_ascii_graphic())
        }
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    is_whole && !is_zero(trace) && !is_zero(span)
}

/// A list of `key=value`, separated by commas.
fn is_state(text: &str) -> bool {
    let mut entries = 0;
    !text.is_empty()
        && text.len() <= MOST_STATE
        && text.split(',').all(|entry| {
            // Empty entries are allowed and mean nothing.
            let entry = entry.trim_matches([' ', '\t']);
            entries += usize::from(!entry.is_empty());
            entry.is_empty() || is_vendor(entry)
        })
        && (1..=MOST_VENDORS).contains(&entries)
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

/// A list of `key=value;property`, separated by commas.
fn is_baggage(text: &str) -> bool {
    text.len() <= MOST_BAGGAGE
        && text.split(',').count() <= MOST_ITEMS
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

/// A token, as HTTP has it.
fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// What a value may have: visible ASCII without quotes, commas, semicolons and backslashes.
fn is_baggage_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}

#[cfg(test)]
mod tests;
