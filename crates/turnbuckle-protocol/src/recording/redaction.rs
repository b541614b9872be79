//! Removes secrets from entries before they are written.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::HashMap,
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use percent_encoding::percent_decode_str;

use crate::{
    codec::headers,
    jsonrpc::{ScanError, Scanner, Span, string_value, unescape},
    recording::{
        EntryKind, RecordedMessage, RecordedText, RedactedValue,
        named_values::{name_before, replace_named_values},
        secret_names::{
            has_bearer_token, has_secret_word, is_secret_header, is_secret_parameter,
            replace_in_url, replace_in_words,
        },
    },
};

/// The number of values that get the same number again; later ones always get a new number.
const MAX_NUMBERED_VALUES: usize = 100_000;

/// What is redacted in a recording.
///
/// Always redacted are the headers `Authorization`, `Proxy-Authorization`, `Cookie`, `Set-Cookie`, `Mcp-Session-Id` and
/// `DPoP`, members of messages with these names, parameters of URLs and options of programs that contain tokens, and
/// output with a bearer token. The methods add rules.
#[derive(Clone, Debug, Default)]
pub struct RedactionRules {
    keys: Vec<String>,
    pointers: Vec<JsonPointer>,
    patterns: Vec<TextPattern>,
}

/// The segments of a JSON pointer (RFC 6901).
#[derive(Clone, Debug)]
struct JsonPointer {
    text: String,
    segments: Vec<String>,
}

/// A function that recognizes secret texts.
#[derive(Clone)]
struct TextPattern(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl fmt::Debug for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TextPattern")
    }
}

/// The text is not a JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a JSON pointer starts with `/`, and `~` in it is followed by 0 or 1")]
pub struct InvalidPointer;

impl RedactionRules {
    /// Returns rules that redact only what is always redacted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Redacts members of messages, headers, parameters and options with this name; case does not matter.
    ///
    /// Output that is not JSON and contains the name is redacted as a whole.
    #[must_use]
    pub fn key(mut self, name: impl Into<String>) -> Self {
        self.keys.push(name.into());
        self
    }

    /// Redacts the value at a JSON pointer (RFC 6901) of every message.
    ///
    /// # Errors
    ///
    /// If the text is not a JSON pointer.
    pub fn pointer(mut self, text: &str) -> Result<Self, InvalidPointer> {
        let path = text.strip_prefix('/').ok_or(InvalidPointer)?;
        let segments: Option<Vec<_>> = path.split('/').map(unescape_segment).collect();
        self.pointers.push(JsonPointer {
            text: text.to_owned(),
            segments: segments.ok_or(InvalidPointer)?,
        });
        Ok(self)
    }

    /// Redacts every text for which the function returns true: strings in messages, headers, parameters, and output.
    #[must_use]
    pub fn pattern(mut self, is_secret: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.patterns.push(TextPattern(Arc::new(is_secret)));
        self
    }

    /// Returns the rules as the header of a recording names them. A pattern is not named, because it may show a secret.
    pub fn names(&self) -> Vec<String> {
        let keys = self.keys.iter().cloned();
        let pointers = self.pointers.iter().map(|pointer| pointer.text.clone());
        let patterns = self.patterns.iter().map(|_| "re:".to_owned());
        let always = std::iter::once("headers".to_owned());
        always.chain(keys).chain(pointers).chain(patterns).collect()
    }

    fn is_key(&self, name: &str) -> bool {
        let mut keys = self.keys.iter();
        is_secret_header(name) || keys.any(|key| key.eq_ignore_ascii_case(name))
    }

    fn is_parameter(&self, name: &str) -> bool {
        let option = name.trim_start_matches('-');
        is_secret_parameter(name) || self.is_key(name) || self.is_key(option)
    }

    /// Returns whether an argument is `NAME=VALUE` or `NAME: VALUE` with the name of a secret.
    fn is_named_argument(&self, text: &str) -> bool {
        let is_named = |separator| {
            let pair = text.split_once(separator);
            pair.is_some_and(|(name, _)| !name.contains("://") && self.is_parameter(name.trim()))
        };
        is_named('=') || is_named(':')
    }

    /// Returns whether a text has the name of a secret before any `=` or `:`.
    fn has_named_value(&self, text: &str) -> bool {
        let mut separators = text.match_indices(['=', ':']);
        separators.any(|(at, _)| self.is_secret_name(name_before(&text[..at])))
    }

    /// Returns whether a name is that of a secret even in running text.
    fn is_secret_name(&self, name: &str) -> bool {
        has_secret_word(name) || self.is_key(name.trim_start_matches('-'))
    }

    /// Returns whether a pattern matches a URL, or a part of it.
    fn matches_pattern_in_url(&self, url: &str) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let decoded = percent_decode_str(url).decode_utf8_lossy();
        let matches_part = |text: &str| {
            let mut parts = text.split(['/', '?', '#', '&', ';', '=', ':', '@', ',']);
            parts.any(|part| !part.is_empty() && self.matches_pattern(part))
        };
        let is_match = |text: &str| self.matches_pattern(text) || matches_part(text);
        is_match(url) || is_match(&decoded)
    }

    fn matches_pattern(&self, text: &str) -> bool {
        self.patterns.iter().any(|pattern| (pattern.0)(text))
    }

    fn mentions_key(&self, text: &str) -> bool {
        if self.keys.is_empty() {
            return false;
        }
        let text = text.to_ascii_lowercase();
        let mut keys = self.keys.iter();
        keys.any(|key| text.contains(&key.to_ascii_lowercase()))
    }

    /// Returns whether a pointer ends at this path. A pointer also applies to each message of a batch.
    fn is_pointed_at(&self, path: &[Cow<'_, str>], is_batch: bool) -> bool {
        let ends_at = |path: &[Cow<'_, str>]| {
            let mut pointers = self.pointers.iter();
            pointers.any(|pointer| pointer.segments == path)
        };
        ends_at(path) || (is_batch && !path.is_empty() && ends_at(&path[1..]))
    }

    /// Returns whether a header repeats a part of the message that these rules may redact.
    fn may_repeat_secret(&self, header: &str) -> bool {
        const NAME_HEADER: &str = "mcp-name";
        const PARAM_PREFIX: &str = "mcp-param-";
        let has_rules = !self.keys.is_empty() || !self.pointers.is_empty();
        let header = header.to_ascii_lowercase();
        has_rules && (header.starts_with(PARAM_PREFIX) || header == NAME_HEADER)
    }
}

fn unescape_segment(segment: &str) -> Option<String> {
    let mut out = String::new();
    let mut characters = segment.chars();
    while let Some(character) = characters.next() {
        match character {
            '~' => match characters.next() {
                Some('0') => out.push('~'),
                Some('1') => out.push('/'),
                _ => return None,
            },
            other => out.push(other),
        }
    }
    Some(out)
}

/// Redacts the entries of one recording.
///
/// Entries may be redacted already: their placeholders stay, and new numbers are above those seen so far.
#[derive(Debug, Default)]
pub struct Redactor {
    rules: RedactionRules,
    numbers: ValueNumbers,
}

impl Redactor {
    /// Creates a redactor for a new recording.
    pub fn new(rules: RedactionRules) -> Self {
        Self {
            rules,
            numbers: ValueNumbers::default(),
        }
    }

    /// Returns the rules as the header of a recording names them.
    pub fn names(&self) -> Vec<String> {
        self.rules.names()
    }

    /// Replaces the secrets of an entry.
    pub fn redact(&mut self, kind: &mut EntryKind) {
        match kind {
            EntryKind::Message(entry) => {
                self.numbers.skip_placeholders(entry.message.as_str());
                let redacted = match self.redact_json(entry.message.as_str(), JsonContent::Message)
                {
                    Ok(None) => return,
                    Ok(Some(json)) => json,
                    // Only a message of a foreign recording: its secrets cannot be found.
                    Err(_) => self.placeholder(entry.message.as_str()),
                };
                if let Some(message) = RecordedMessage::from_json(&redacted) {
                    entry.message = message;
                }
            }
            EntryKind::Noise(entry) | EntryKind::Stderr(entry) => {
                self.redact_optional(&mut entry.text);
                self.redact_bytes(entry);
            }
            EntryKind::Open(entry) => {
                self.redact_command(&mut entry.command);
                entry.url.iter_mut().for_each(|url| self.redact_url(url));
            }
            EntryKind::Request(entry) => {
                self.redact_url(&mut entry.url);
                self.redact_headers(&mut entry.headers);
            }
            EntryKind::Response(entry) => self.redact_headers(&mut entry.headers),
            EntryKind::End(entry) => self.redact_optional(&mut entry.error),
            EntryKind::Event(entry) => {
                self.redact_optional(&mut entry.id);
                self.redact_optional(&mut entry.comment);
                entry.url.iter_mut().for_each(|url| self.redact_url(url));
            }
            EntryKind::Auth(entry) => entry.url.iter_mut().for_each(|url| self.redact_url(url)),
            EntryKind::Anomaly(entry) => self.redact_output(&mut entry.text),
            EntryKind::Unknown(entry) => {
                if let Ok(Some(members)) = self.redact_json(entry.members(), JsonContent::Output) {
                    entry.set_members(members);
                }
            }
            EntryKind::Close(_) | EntryKind::Gap(_) => {}
        }
    }

    fn redact_headers(&mut self, headers: &mut [(String, RecordedText)]) {
        for (name, value) in headers {
            let has_secret = |text: &str| self.rules.matches_pattern(text);
            let is_secret_argument = value.as_str().is_some_and(
                |text| matches!(headers::decode(text), Ok(Cow::Owned(text)) if has_secret(&text)),
            );
            let is_secret = self.rules.is_key(name) || self.rules.may_repeat_secret(name);
            if is_secret || is_secret_argument {
                self.replace(value);
            } else if value.as_str().is_some_and(|text| text.contains("://")) {
                self.redact_url(value);
                self.redact_named_values(value);
            } else {
                self.redact_output(value);
            }
        }
    }

    /// Redacts the arguments of a program: `--token VALUE`, `--token=VALUE`, `TOKEN=VALUE`, and URLs.
    fn redact_command(&mut self, command: &mut [RecordedText]) {
        let mut is_value = false;
        for argument in command {
            let Some(text) = argument.as_str().map(str::to_owned) else {
                continue;
            };
            if std::mem::take(&mut is_value) && !text.starts_with('-') {
                self.replace(argument);
                continue;
            }
            if self.rules.is_named_argument(&text) {
                self.replace(argument);
            } else if text.contains("://") {
                self.redact_url(argument);
                self.redact_named_values(argument);
            } else if self.rules.has_named_value(&text) {
                self.replace(argument);
            } else {
                is_value = text.starts_with('-') && self.rules.is_parameter(&text);
                self.redact_output(argument);
            }
        }
    }

    fn redact_url(&mut self, url: &mut RecordedText) {
        let RecordedText::Text(text) = url else {
            return self.skip_number(url);
        };
        self.numbers.skip_placeholders(text);
        let (rules, numbers) = (&self.rules, &mut self.numbers);
        let redacted = replace_in_url(
            text,
            |name, value| rules.is_parameter(name) || rules.matches_pattern(value),
            |value| numbers.number(value),
        );
        if let Cow::Owned(redacted) = redacted {
            *text = redacted;
        }
        if self.rules.matches_pattern_in_url(text) {
            self.replace(url);
        }
    }

    fn redact_optional(&mut self, text: &mut Option<RecordedText>) {
        if let Some(text) = text {
            self.redact_output(text);
        }
    }

    /// Redacts text that is not a message, but may contain JSON.
    fn redact_output(&mut self, output: &mut RecordedText) {
        let RecordedText::Text(text) = output else {
            return self.skip_number(output);
        };
        self.numbers.skip_placeholders(text);
        if let Some(redacted) = self.redacted_output(text) {
            *output = redacted;
        }
    }

    /// Returns the text without its secrets, or `None` if it has none.
    fn redacted_output(&mut self, text: &str) -> Option<RecordedText> {
        if self.rules.matches_pattern(text) || has_bearer_token(text) {
            return Some(self.redacted(text));
        }
        match self.redact_json(text, JsonContent::Output) {
            Ok(redacted) => redacted.map(RecordedText::Text),
            Err(_) if self.rules.mentions_key(text) => Some(self.redacted(text)),
            Err(_) => self.redact_words(text).map(RecordedText::Text),
        }
    }

    /// Returns the text without the secrets of its URLs and its named values, or `None` if it has none.
    fn redact_words(&mut self, text: &str) -> Option<String> {
        let Self { rules, numbers } = self;
        let numbers = RefCell::new(numbers);
        let number = |value: &str| numbers.borrow_mut().number(value);
        let is_secret =
            |name: &str, value: &str| rules.is_parameter(name) || rules.matches_pattern(value);
        let replaced = replace_in_words(text, |word| {
            let redacted = replace_in_url(word, is_secret, number);
            matches!(redacted, Cow::Owned(_)).then(|| redacted.into_owned())
        });
        let named = replace_named_values(&replaced, |name| rules.is_secret_name(name), number);
        match (named, &replaced) {
            (Cow::Owned(redacted), _) => Some(redacted),
            (Cow::Borrowed(_), Cow::Owned(redacted)) => Some(redacted.clone()),
            (Cow::Borrowed(_), Cow::Borrowed(_)) => None,
        }
    }

    fn redact_named_values(&mut self, value: &mut RecordedText) {
        let RecordedText::Text(text) = value else {
            return;
        };
        let (rules, numbers) = (&self.rules, &mut self.numbers);
        let redacted = replace_named_values(
            text,
            |name| rules.is_secret_name(name),
            |value| numbers.number(value),
        );
        if let Cow::Owned(redacted) = redacted {
            *text = redacted;
        }
    }

    /// Redacts output that is not UTF-8 as if its invalid parts were replaced.
    fn redact_bytes(&mut self, entry: &mut super::OutputEntry) {
        if entry.base64.is_none() {
            return;
        }
        let Some(bytes) = entry.bytes() else { return };
        let text = String::from_utf8_lossy(&bytes);
        if let Some(redacted) = self.redacted_output(&text) {
            entry.base64 = None;
            entry.text = Some(redacted);
        }
    }

    fn redacted(&mut self, text: &str) -> RecordedText {
        let number = self.numbers.number(text);
        RecordedText::Redacted(RedactedValue { number })
    }

    /// Leaves a value that is already redacted, and its number for that value.
    fn skip_number(&mut self, value: &RecordedText) {
        if let RecordedText::Redacted(value) = value {
            self.numbers.skip(value.number);
        }
    }

    fn replace(&mut self, value: &mut RecordedText) {
        match value {
            RecordedText::Text(text) => *value = self.redacted(text),
            RecordedText::Redacted(_) => self.skip_number(value),
        }
    }

    /// Returns the JSON text in the place of a value.
    fn placeholder(&mut self, value: &str) -> String {
        format!(r#"{{"$redacted":{}}}"#, self.numbers.number(value))
    }

    /// Returns the JSON text in the place of a string of output, or `None` if it contains none.
    fn redact_string(&mut self, text: &str) -> Option<String> {
        if self.rules.mentions_key(text) || has_bearer_token(text) {
            return Some(self.placeholder(text));
        }
        let redacted = self.redact_words(text)?;
        Some(serde_json::Value::String(redacted).to_string())
    }

    /// Returns the JSON text with redacted values, or `None` if it has none. All other bytes stay.
    fn redact_json(
        &mut self,
        json: &str,
        content: JsonContent,
    ) -> Result<Option<String>, ScanError> {
        let mut scanner = Scanner::of_text(json)?;
        scanner.skip_value(0)?;
        scanner.finish()?;

        let mut scanner = Scanner::of_text(json)?;
        let mut search = SecretSearch {
            rules: &self.rules,
            content,
            path: Vec::new(),
            is_batch: scanner.peek() == Some(b'['),
            found: Vec::new(),
        };
        search.visit_value(&mut scanner)?;
        if search.found.is_empty() {
            return Ok(None);
        }
        let mut out = String::with_capacity(json.len());
        let mut end = 0;
        for (span, extent) in search.found {
            let value = &json[span.start..span.end];
            let text = string_value(value).unwrap_or(Cow::Borrowed(value));
            let redacted = match extent {
                SecretExtent::Value => Some(self.placeholder(&text)),
                SecretExtent::Words => self.redact_string(&text),
            };
            if let Some(redacted) = redacted {
                out.push_str(&json[end..span.start]);
                out.push_str(&redacted);
                end = span.end;
            }
        }
        if end == 0 {
            return Ok(None);
        }
        out.push_str(&json[end..]);
        Ok(Some(out))
    }
}

/// The kind of JSON text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonContent {
    /// A message. Only the rules apply, because its members belong to the application.
    Message,
    /// Output, such as a log line or a response with tokens.
    Output,
}

/// Finds the values to redact in JSON text that was checked before, so that its depth is limited.
struct SecretSearch<'a, 'r> {
    rules: &'r RedactionRules,
    content: JsonContent,
    path: Vec<Cow<'a, str>>,
    is_batch: bool,
    found: Vec<(Span, SecretExtent)>,
}

/// How much of a value is secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretExtent {
    /// The whole value.
    Value,
    /// Words of a string, if any.
    Words,
}

impl<'a> SecretSearch<'a, '_> {
    fn visit_value(&mut self, scanner: &mut Scanner<'a>) -> Result<(), ScanError> {
        if self.rules.is_pointed_at(&self.path, self.is_batch) {
            return self.visit_secret(scanner);
        }
        match scanner.peek() {
            Some(b'{') => self.visit_object(scanner),
            Some(b'[') => self.visit_array(scanner),
            _ => {
                let span = scanner.skip_value(0)?;
                let text = string_value(scanner.slice(span));
                if let Some(text) = text {
                    if self.rules.matches_pattern(&text) {
                        self.found.push((span, SecretExtent::Value));
                    } else if self.content == JsonContent::Output {
                        self.found.push((span, SecretExtent::Words));
                    }
                }
                Ok(())
            }
        }
    }

    /// A value that is already redacted stays.
    fn visit_secret(&mut self, scanner: &mut Scanner<'a>) -> Result<(), ScanError> {
        let span = scanner.skip_value(0)?;
        if !is_placeholder(scanner.slice(span)) {
            self.found.push((span, SecretExtent::Value));
        }
        Ok(())
    }

    fn visit_object(&mut self, scanner: &mut Scanner<'a>) -> Result<(), ScanError> {
        let mut key = scanner.first_key()?;
        while let Some(name) = key {
            let name = unescape(scanner.slice(name.span));
            let is_secret_output = self.content == JsonContent::Output && has_secret_word(&name);
            if is_secret_output || self.rules.is_key(&name) {
                self.visit_secret(scanner)?;
            } else {
                self.path.push(name);
                self.visit_value(scanner)?;
                self.path.pop();
            }
            key = scanner.next_key()?;
        }
        Ok(())
    }

    fn visit_array(&mut self, scanner: &mut Scanner<'a>) -> Result<(), ScanError> {
        let mut more = scanner.first_entry()?;
        let mut index = 0_usize;
        while more {
            self.path.push(Cow::Owned(index.to_string()));
            self.visit_value(scanner)?;
            self.path.pop();
            index += 1;
            more = scanner.next_entry()?;
        }
        Ok(())
    }
}

/// Returns whether JSON text is the place of a redacted value.
fn is_placeholder(json: &str) -> bool {
    let number = json
        .strip_prefix(r#"{"$redacted":"#)
        .and_then(|rest| rest.strip_suffix('}'));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Numbers redacted values. Stores only hashes of them, with random keys.
#[derive(Debug, Default)]
struct ValueNumbers {
    hashers: [RandomState; 2],
    numbers: HashMap<[u64; 2], u64>,
    last: u64,
}

impl ValueNumbers {
    /// Continues above the numbers of the placeholders in a text, which another redactor wrote.
    fn skip_placeholders(&mut self, text: &str) {
        const NAME: &str = "$redacted";
        for (at, name) in text.match_indices(NAME) {
            let rest = text[at + name.len()..].trim_start_matches(['"', '\\', ':', ' ']);
            let end = rest.find(|ch: char| !ch.is_ascii_digit());
            if let Ok(number) = rest[..end.unwrap_or(rest.len())].parse() {
                self.skip(number);
            }
        }
    }

    /// Continues above a number, unless it is so high that a peer must have made it up.
    fn skip(&mut self, number: u64) {
        const MAX_SKIPPED: u64 = 1 << 48;
        if number <= MAX_SKIPPED {
            self.last = self.last.max(number);
        }
    }

    /// Returns the number of a value: that of an equal earlier value, or the next one.
    fn number(&mut self, value: &str) -> u64 {
        let hash = self.hashers.each_ref().map(|hasher| hasher.hash_one(value));
        if let Some(number) = self.numbers.get(&hash) {
            return *number;
        }
        self.last += 1;
        if self.numbers.len() < MAX_NUMBERED_VALUES {
            self.numbers.insert(hash, self.last);
        }
        self.last
    }
}
