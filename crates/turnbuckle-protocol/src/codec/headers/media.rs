//! Media types of bodies, and the `Accept` header.

/// The media types that the protocol uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`.
    Json,
    /// `text/event-stream`.
    EventStream,
    /// Anything else.
    Other,
}

/// Parses a `Content-Type` header; parameters such as the charset are ignored.
pub fn parse_content_type(header: &str) -> MediaType {
    // Fast path for the common spelling.
    if header == "application/json" {
        return MediaType::Json;
    }
    let essence = header.split(';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case("application/json") {
        MediaType::Json
    } else if essence.eq_ignore_ascii_case("text/event-stream") {
        MediaType::EventStream
    } else {
        MediaType::Other
    }
}

/// The media types that an `Accept` header allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// `application/json` may be sent.
    pub json: bool,
    /// `text/event-stream` may be sent.
    pub event_stream: bool,
}

impl Accept {
    /// Returns whether both media types are accepted, as required of clients.
    pub fn accepts_json_and_sse(self) -> bool {
        self.json && self.event_stream
    }
}

/// Parses an `Accept` header; join several with a comma first.
///
/// The most specific matching range decides (RFC 9110): `*/*, text/event-stream;q=0` allows JSON only.
pub fn parse_accept(header: &str) -> Accept {
    if COMMON_ACCEPT_HEADERS.contains(&header) {
        return Accept {
            json: true,
            event_stream: true,
        };
    }
    let mut json = RangeMatch::default();
    let mut event_stream = RangeMatch::default();
    for element in split_unquoted(header, b',') {
        let mut parts = split_unquoted(element, b';');
        let range = parts.next().unwrap_or_default().trim_ascii();
        let allowed = !parts.any(is_zero_quality);
        json.apply(range, ("application", "json"), allowed);
        event_stream.apply(range, ("text", "event-stream"), allowed);
    }
    Accept {
        json: json.allowed,
        event_stream: event_stream.allowed,
    }
}

/// Common spellings, for a fast path.
const COMMON_ACCEPT_HEADERS: [&str; 2] = [
    "application/json, text/event-stream",
    "text/event-stream, application/json",
];

/// The most specific range that matched a type so far.
#[derive(Default)]
struct RangeMatch {
    specificity: u8,
    allowed: bool,
}

impl RangeMatch {
    fn apply(&mut self, range: &str, (kind, subkind): (&str, &str), allowed: bool) {
        let Some((left, right)) = range.split_once('/') else {
            return;
        };
        let specificity = match (left, right) {
            ("*", "*") => 1,
            (left, "*") if left.eq_ignore_ascii_case(kind) => 2,
            (left, right)
                if left.eq_ignore_ascii_case(kind) && right.eq_ignore_ascii_case(subkind) =>
            {
                3
            }
            _ => return,
        };
        if specificity > self.specificity {
            *self = Self {
                specificity,
                allowed,
            };
        } else if specificity == self.specificity {
            // Ranges that differ in parameters only: one that allows the type is enough.
            self.allowed |= allowed;
        }
    }
}

/// Returns whether a parameter is `q=0`, `q=0.000` and the like.
fn is_zero_quality(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    let value = value.trim_ascii();
    name.trim_ascii().eq_ignore_ascii_case("q")
        && value.starts_with('0')
        && value.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

/// Splits at a separator, except inside quoted strings.
fn split_unquoted(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = text.bytes().position(|byte| {
            let here = byte == separator && !quoted;
            quoted ^= byte == b'"' && !escaped;
            escaped = quoted && byte == b'\\' && !escaped;
            here
        });
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}
