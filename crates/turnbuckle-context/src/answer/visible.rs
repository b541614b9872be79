//! Escaping of untrusted names and file contents.
//!
//! The name of a file, folder or branch can contain any character, including line breaks that imitate the next line of
//! a response. Text forms escape such names; structured content contains them unchanged.

use std::{borrow::Cow, fmt::Write as _};

/// Escapes control characters, line breaks and bidirectional formatting characters, so that the name fits on one line.
pub(crate) fn sanitize(name: &str) -> Cow<'_, str> {
    escape(name, is_unsafe)
}

/// Prefixes each line of a file with `| `, which no line of a response starts with.
pub(crate) fn quote_lines(text: &str) -> String {
    let is_unsafe = |sign: char| sign != '\t' && is_unsafe(sign);
    let lines = text.lines();
    let lines = lines.map(|line| format!("| {}", escape(line, is_unsafe)));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_unsafe(sign: char) -> bool {
    let turns_or_hides = matches!(
        sign,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    );
    sign.is_control() || turns_or_hides
}

fn escape(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_unsafe) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for sign in text.chars() {
        match sign {
            _ if !is_unsafe(sign) => shown.push(sign),
            '\n' | '\r' | '\t' => shown.extend(sign.escape_default()),
            _ => {
                let _ = write!(shown, "{}", sign.escape_unicode());
            }
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_line_or_turns_it_is_escaped() {
        for (name, shown) in [
            ("src/größe.rs", "src/größe.rs"),
            ("a\nb\r\tc", r"a\nb\r\tc"),
            ("a\u{85}b\u{2028}c\u{2029}", r"a\u{85}b\u{2028}c\u{2029}"),
            ("\u{1b}[2Kx", r"\u{1b}[2Kx"),
            (
                "\u{202e}gpj.exe\u{2066}\u{200f}",
                r"\u{202e}gpj.exe\u{2066}\u{200f}",
            ),
        ] {
            assert_eq!(sanitize(name), shown);
        }
        assert!(matches!(sanitize("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn every_line_of_a_file_is_marked() {
        assert_eq!(quote_lines("a\n\tb\u{2028}\n\n"), "| a\n| \tb\\u{2028}\n| ");
        assert_eq!(quote_lines(""), "");
    }
}
