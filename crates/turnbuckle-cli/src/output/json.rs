//! JSON for programs: exact, stable, and harmless should it end on a terminal after all.

use std::fmt::Write as _;

use serde::Serialize;

use super::plain;

/// Returns a document over several lines, with a line end.
pub(crate) fn document(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("our values have string keys");
    escaped(&text) + "\n"
}

/// Returns a document on one line, with a line end.
pub(crate) fn line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("our values have string keys");
    escaped(&text) + "\n"
}

/// Writes what acts on terminals as `\u009b`, which is the same JSON.
///
/// Such characters can stand only inside of strings: the rest of JSON is ASCII.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter == '\n' || !plain::is_unsafe(letter) {
            text.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
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
    fn what_acts_on_a_terminal_is_escaped_and_the_value_stays() {
        let value = json!({"text": "a\n\u{1b}[31m\u{9b}\u{7f}\u{202e}\u{e0041}é"});

        let text = line(&value);

        assert_eq!(
            text,
            "{\"text\":\"a\\n\\u001b[31m\\u009b\\u007f\\u202e\\udb40\\udc41é\"}\n"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
