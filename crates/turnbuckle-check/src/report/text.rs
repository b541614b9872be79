//! Shortens text of a peer, and selects its headers.
//!
//! Text is escaped by [`turnbuckle_text::sanitize`].

use turnbuckle_text::sanitize::escape_block;

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
pub fn excerpt(text: &str, max_chars: usize) -> String {
    cut(text, max_chars, text.len())
}

/// Like [`excerpt`], for text that is already cut from `total_bytes` bytes.
pub(super) fn cut(text: &str, max_chars: usize, total_bytes: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{} … ({total_bytes} bytes in all)", &text[..end]),
        None if text.len() < total_bytes => format!("{text} … ({total_bytes} bytes in all)"),
        None => text.to_owned(),
    }
}

/// Returns the headers worth showing.
pub fn relevant_headers(excerpt_of: &EvidenceExcerpt) -> impl Iterator<Item = (&str, &str)> {
    let headers = excerpt_of.headers.iter();
    headers
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !IRRELEVANT_HEADERS.contains(name))
}

/// Returns a message, indented if it is JSON.
pub(crate) fn pretty(excerpt_of: &EvidenceExcerpt, max_chars: usize) -> String {
    let value = serde_json::from_str::<serde_json::Value>(&excerpt_of.text);
    match value.and_then(|value| serde_json::to_string_pretty(&value)) {
        Ok(pretty) => escape_block(&excerpt(&pretty, max_chars)),
        Err(_) => escape_block(&excerpt_of.excerpt(max_chars)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        let evidence = |text: &str| EvidenceExcerpt::new(true, text);

        assert_eq!(
            pretty(&evidence("a\u{1b}[2J\u{202e}b\n\tc\u{200b}"), 80),
            "a\\u{1b}[2J\\u{202e}b\n\tc\\u{200b}"
        );
        assert_eq!(
            pretty(&evidence("[\"\u{9b}31m\u{feff}\u{e0041}\"]"), 80),
            "[\n  \"\\u{9b}31m\\u{feff}\\u{e0041}\"\n]"
        );
        assert_eq!(pretty(&evidence("Blåbær, 東京"), 80), "Blåbær, 東京");
    }

    #[test]
    fn long_text_is_cut_at_a_character_boundary() {
        assert_eq!(excerpt("äöü", 2), "äö … (6 bytes in all)");
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(cut("äö", 3, 9), "äö … (9 bytes in all)");
    }
}
