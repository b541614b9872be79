//! Escapes and shortens text of a peer.

use std::fmt::Write as _;

use super::EvidenceExcerpt;

/// Headers that are left out of reports.
const IRRELEVANT_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
    "x-powered-by",
];

/// Returns text up to a number of characters, with the total size if it is cut.
pub fn excerpt(text: &str, most: usize) -> String {
    cut(text, most, text.len())
}

/// Like [`excerpt`], for text that is already cut from `whole` bytes.
pub(super) fn cut(text: &str, most: usize, whole: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} … ({whole} bytes in all)", &text[..end]),
        None if text.len() < whole => format!("{text} … ({whole} bytes in all)"),
        None => text.to_owned(),
    }
}

/// Returns the headers worth showing.
pub fn relevant_headers(shown: &EvidenceExcerpt) -> impl Iterator<Item = (&str, &str)> {
    let headers = shown.headers.iter();
    headers
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !IRRELEVANT_HEADERS.contains(name))
}

/// Escapes characters that are invisible or control a terminal, such as `\u{1b}`; newlines and tabs stay.
pub(crate) fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            _ if hides(letter) => {
                let _ = write!(shown, "{}", letter.escape_unicode());
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// Like [`escape`], on one line.
pub(crate) fn line(text: &str) -> String {
    escape(text).replace('\n', "\\n").replace('\t', " ")
}

/// Returns a message, indented if it is JSON.
pub(crate) fn pretty(shown: &EvidenceExcerpt, most: usize) -> String {
    let value = serde_json::from_str::<serde_json::Value>(&shown.text);
    match value.and_then(|value| serde_json::to_string_pretty(&value)) {
        Ok(pretty) => escape(&excerpt(&pretty, most)),
        Err(_) => escape(&shown.excerpt(most)),
    }
}

/// Returns whether a character is a control character, bidirectional override, zero-width, or invalid in XML.
fn hides(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff0}'..='\u{ffff}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_or_hides_is_shown() {
        assert_eq!(
            escape("a\u{1b}[2J\u{202e}b\n\tc"),
            "a\\u{1b}[2J\\u{202e}b\n\tc"
        );
        assert_eq!(line("a\nb\tc"), "a\\nb c");
        assert_eq!(escape("Blåbær, 東京"), "Blåbær, 東京");
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(excerpt("äöü", 2), "äö … (6 bytes in all)");
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(cut("äö", 3, 9), "äö … (9 bytes in all)");
    }
}
