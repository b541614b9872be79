//! Arguments as a note has them: short, and without secrets.

use serde_json::Value;

use crate::Redactor;

/// Bytes of arguments that are looked at. Of more, only the size is noted.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;
/// Letters that are kept of one value, and of all arguments.
const MAX_VALUE_CHARS: usize = 120;
const MAX_PARAMS_CHARS: usize = 400;
/// How much more than what is kept is looked at for secrets: one that is cut off at the end would not be found.
const REDACTION_MARGIN_CHARS: usize = 8 * 1024;

/// Returns arguments, given as JSON text, for a note.
pub(super) fn text(arguments: Option<&str>) -> String {
    let Some(json) = arguments else {
        return String::new();
    };
    if json.len() > MAX_ARGUMENT_BYTES {
        return format!("({} bytes)", json.len());
    }
    match serde_json::from_str(json) {
        Ok(mut value) => {
            shorten(&mut value);
            // Once more as a whole: the name of an argument may be what tells that its value is a secret.
            summarize(&value.to_string(), MAX_PARAMS_CHARS)
        }
        Err(_) => format!("({} bytes, no JSON)", json.len()),
    }
}

/// Returns the beginning of a text without secrets and control characters.
pub(super) fn summarize(text: &str, letters: usize) -> String {
    let looked_at = text.char_indices().nth(letters + REDACTION_MARGIN_CHARS);
    let looked_at = looked_at.map_or(text, |(end, _)| &text[..end]);
    let redacted = Redactor::standard().redact(looked_at);
    let mut rest = redacted.text.chars();
    let mut kept = String::new();
    kept.extend(rest.by_ref().take(letters).map(replace_control));
    if rest.next().is_some() || looked_at.len() < text.len() {
        kept.push('…');
    }
    kept
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = summarize(text, MAX_VALUE_CHARS),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

fn replace_control(letter: char) -> char {
    match letter.is_control() {
        true => ' ',
        false => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_one_by_one() {
        let json = serde_json::json!({ "content": "x".repeat(1000), "limit": 3 }).to_string();
        let text = text(Some(&json));
        assert!(text.ends_with("…\",\"limit\":3}"), "{text}");
        assert!(text.len() < 200, "{text}");
    }

    #[test]
    fn of_huge_arguments_only_the_size_is_noted() {
        let json = format!("[{:?}]", "x".repeat(MAX_ARGUMENT_BYTES));
        assert_eq!(text(Some(&json)), format!("({} bytes)", json.len()));
        assert_eq!(text(None), "");
    }

    #[test]
    fn secrets_are_taken_out_even_where_the_text_is_cut() {
        let token = format!("ghp_{}", "aB3dE6gH9".repeat(4));
        for before in [0, 60, 100, 118] {
            let content = format!("{} {token} after", "x".repeat(before));
            let json = serde_json::json!({ "content": content }).to_string();
            let text = text(Some(&json));
            assert!(!text.contains("ghp_"), "{text}");
        }
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi\n-----END RSA PRIVATE KEY-----";
        let json = serde_json::json!({ "content": key }).to_string();
        assert!(!text(Some(&json)).contains("MIIEow"));
    }

    #[test]
    fn control_characters_are_not_kept() {
        assert_eq!(summarize("a\u{1b}[31mb\nc", 50), "a [31mb c");
        assert_eq!(summarize("äöü", 2), "äö…");
    }
}
