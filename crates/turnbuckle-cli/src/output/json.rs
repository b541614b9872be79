//! JSON for programs. It is safe to show on a terminal.

use std::fmt::Write as _;

use serde::Serialize;

use super::sanitize;

/// Returns indented JSON with a final newline.
pub(crate) fn document(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("our values have string keys");
    escaped(&text) + "\n"
}

/// Returns JSON on one line with a final newline.
pub(crate) fn line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("our values have string keys");
    escaped(&text) + "\n"
}

/// Escapes characters that act on terminals, for example as `\u009b`. The JSON value stays the same.
///
/// Such characters occur only inside strings: the rest of JSON is ASCII.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for ch in json.chars() {
        if ch == '\n' || !sanitize::is_unsafe(ch) {
            text.push(ch);
            continue;
        }
        for unit in ch.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_value_stays() {
        let value = json!({"text": "a\n\u{1b}[31m\u{9b}\u{7f}\u{202e}\u{e0041}é"});

        let text = line(&value);

        assert_eq!(
            text,
            "{\"text\":\"a\\n\\u001b[31m\\u009b\\u007f\\u202e\\udb40\\udc41é\"}\n"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
