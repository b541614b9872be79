//! Text of a peer, made harmless and short enough to be read.

use std::fmt::Write as _;

use super::Shown;

/// Headers that never tell anything.
const NOISE: &[&str] = &[
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
    "x-powered-by",
];

/// Returns text up to so many characters, and says how much there was if that is not all.
pub fn excerpt(text: &str, most: usize) -> String {
    cut(text, most, text.len())
}

/// The same for text of which not all may be kept: the whole has so many bytes.
pub(super) fn cut(text: &str, most: usize, whole: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} … ({whole} bytes in all)", &text[..end]),
        None if text.len() < whole => format!("{text} … ({whole} bytes in all)"),
        None => text.to_owned(),
    }
}

/// Returns the headers that may tell something.
pub fn telling(shown: &Shown) -> impl Iterator<Item = (&str, &str)> {
    let headers = shown.headers.iter();
    headers
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !NOISE.contains(name))
}

/// Shows what acts on a reader's screen or hides on it as escapes such as `\u{1b}`; line ends and tabs stay.
pub(crate) fn visible(text: &str) -> String {
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

/// The same, on one line.
pub(crate) fn line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', " ")
}

/// Returns a message over several lines if it is JSON, and as it is otherwise.
pub(crate) fn pretty(shown: &Shown, most: usize) -> String {
    let value = serde_json::from_str::<serde_json::Value>(&shown.text);
    match value.and_then(|value| serde_json::to_string_pretty(&value)) {
        Ok(pretty) => visible(&excerpt(&pretty, most)),
        Err(_) => visible(&shown.excerpt(most)),
    }
}

/// Control characters, what turns the direction of writing, what takes no room, and what XML has no place for.
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
            visible("a\u{1b}[2J\u{202e}b\n\tc"),
            "a\\u{1b}[2J\\u{202e}b\n\tc"
        );
        assert_eq!(line("a\nb\tc"), "a\\nb c");
        assert_eq!(visible("Blåbær, 東京"), "Blåbær, 東京");
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(excerpt("äöü", 2), "äö … (6 bytes in all)");
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(cut("äö", 3, 9), "äö … (9 bytes in all)");
    }
}
