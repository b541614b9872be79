//! What a body is, and what the other side is ready to read.

/// The kinds of body that the protocol knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`.
    Json,
    /// `text/event-stream`.
    EventStream,
    /// Anything else.
    Other,
}

/// Reads a `Content-Type` header; parameters such as the charset are ignored.
pub fn content_type(header: &str) -> MediaType {
    // How nearly every peer writes it, so that it needs no reading.
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

/// What an `Accept` header allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acceptable {
    /// `application/json` may be sent.
    pub json: bool,
    /// `text/event-stream` may be sent.
    pub event_stream: bool,
}

impl Acceptable {
    /// Says whether the sender is ready for either kind, as a client has to be.
    pub fn both(self) -> bool {
        self.json && self.event_stream
    }
}

/// Reads an `Accept` header; several are joined with a comma first.
///
/// The most specific range that names a type decides, as RFC 9110 says: `*/*, text/event-stream;q=0`
/// allows JSON only.
pub fn acceptable(header: &str) -> Acceptable {
    if USUAL.contains(&header) {
        return Acceptable {
            json: true,
            event_stream: true,
        };
    }
    let mut json = Verdict::default();
    let mut event_stream = Verdict::default();
    for element in split_unquoted(header, b',') {
        let mut parts = split_unquoted(element, b';');
        let range = parts.next().unwrap_or_default().trim_ascii();
        let allowed = !parts.any(is_zero_quality);
        json.hear(range, ("application", "json"), allowed);
        event_stream.hear(range, ("text", "event-stream"), allowed);
    }
    Acceptable {
        json: json.allowed,
        event_stream: event_stream.allowed,
    }
}

/// How nearly every client writes it, so that these need no reading.
const USUAL: [&str; 2] = [
    "application/json, text/event-stream",
    "text/event-stream, application/json",
];

/// What the most specific range so far says about one type.
#[derive(Default)]
struct Verdict {
    specificity: u8,
    allowed: bool,
}

impl Verdict {
    fn hear(&mut self, range: &str, (kind, subkind): (&str, &str), allowed: bool) {
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
            // Said twice, as by ranges that differ in parameters: one that allows it suffices.
            self.allowed |= allowed;
        }
    }
}

/// Recognizes `q=0`, `q=0.000` and the like.
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
