//! Finds values with a name in running text, such as `token=VALUE`, `token: VALUE` and `"token":"VALUE"`.

use std::borrow::Cow;

use super::secret_names::is_secret_header;

/// The beginning of a placeholder in running text.
const PLACEHOLDER: &str = "$redacted:";

/// Replaces the values of names for which `is_secret` returns true.
///
/// A quoted value ends with its quote, another one with the next space. The values of secret headers, of credentials such as
/// `Basic VALUE`, and of arrays and objects end with the line.
pub(super) fn replace_named_values<'t>(
    text: &'t str,
    mut is_secret: impl FnMut(&str) -> bool,
    mut number: impl FnMut(&str) -> u64,
) -> Cow<'t, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'=', b':', &text.as_bytes()[at..]) {
        let separator = at + found;
        at = separator + 1;
        let name = name_before(&text[copied..separator]);
        if name.is_empty() || !is_separator(text, separator) {
            continue;
        }
        let is_header = is_secret_header(name.trim_start_matches('-'));
        if !is_header && !is_secret(name) {
            continue;
        }
        let value = value_after(text, separator + 1, is_header);
        let secret = &text[value.start..value.end];
        if let Some(length) = placeholder_length(secret) {
            at = value.start + length;
            continue;
        }
        at = value.end;
        if secret.is_empty() {
            continue;
        }
        out.push_str(&text[copied..value.start]);
        out.push_str(&format!("{PLACEHOLDER}{}", number(secret)));
        copied = value.end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns whether a text is a placeholder.
pub(super) fn is_placeholder(text: &str) -> bool {
    placeholder_length(text) == Some(text.len())
}

/// Returns the length of the placeholder that a text consists of, apart from further parameters as in `$redacted:1&page=2`.
fn placeholder_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(PLACEHOLDER)?;
    let end = rest.trim_start_matches(|ch: char| ch.is_ascii_digit());
    let is_end = end.is_empty() || end.starts_with(['&', ';', '#', '?', '@']);
    (is_end && end.len() < rest.len()).then(|| text.len() - end.len())
}

/// Returns whether the character separates a name from a value: not in `a::b` and `a://b`.
fn is_separator(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + 1..]);
    let is_colon = text[at..].starts_with(':');
    !(is_colon && (before.ends_with(':') || after.starts_with(':') || after.starts_with("//")))
}

/// Returns the name at the end of a text. If it is `key`, the word before belongs to it, as in `API key`.
pub(super) fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '\t']);
    let text = text.trim_end_matches(['"', '\'', '`', ']', '\\']);
    let start = start_of_word(text);
    let name = &text[start..];
    if !name.eq_ignore_ascii_case("key") {
        return name;
    }
    let before = text[..start].trim_end_matches([' ', '\t']);
    &text[start_of_word(before)..]
}

fn start_of_word(text: &str) -> usize {
    let is_name = |ch: char| ch.is_ascii_alphanumeric() || "-_.%".contains(ch);
    text.trim_end_matches(is_name).len()
}

/// The place of a value in a text.
struct ValueSpan {
    start: usize,
    end: usize,
}

/// Returns the value that begins at a place or after it.
fn value_after(text: &str, at: usize, is_header: bool) -> ValueSpan {
    let rest = &text[at..];
    // As in `a := b` and `a => b`.
    let value = rest.trim_start_matches(['=', '>']);
    let value = value.trim_start_matches([' ', '\t']);
    let start = text.len() - value.len();
    let span = |start, length| ValueSpan {
        start,
        end: start + length,
    };
    if let Some(quote) = value.chars().next().filter(|ch| "\"'`".contains(*ch)) {
        return span(start + 1, quoted_length(&value[1..], quote));
    }
    if is_header || value.starts_with(['{', '[', '\\']) || begins_with_scheme(value) {
        return span(start, value.find(['\n', '\r']).unwrap_or(value.len()));
    }
    span(
        start,
        value.find(char::is_whitespace).unwrap_or(value.len()),
    )
}

/// Returns the length up to the closing quote, or of the whole text.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.find(|ch| {
        let is_end = ch == quote && !is_escaped;
        is_escaped = ch == '\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(text.len())
}

/// Returns whether a value begins with the scheme of an `Authorization` header.
fn begins_with_scheme(value: &str) -> bool {
    let word = value.split(char::is_whitespace).next().unwrap_or_default();
    let schemes = ["basic", "bearer", "digest", "dpop", "token"];
    schemes
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}
