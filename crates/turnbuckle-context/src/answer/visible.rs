//! Text that others wrote, shown so that it is what it looks like.
//!
//! The name of a file, a folder or a branch may have anything in it, also a line end and what looks like the next line
//! of an answer. In text it is escaped; structured content has the name as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A name on one line: control characters, line ends and characters that turn the direction of writing are escaped.
pub(crate) fn visible(name: &str) -> Cow<'_, str> {
    escaped(name, is_unsafe)
}

/// Lines of a file, each after a `| ` that no line of an answer begins with.
pub(crate) fn quoted(text: &str) -> String {
    let is_unsafe = |sign: char| sign != '\t' && is_unsafe(sign);
    let lines = text.lines();
    let lines = lines.map(|line| format!("| {}", escaped(line, is_unsafe)));
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

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
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
            assert_eq!(visible(name), shown);
        }
        assert!(matches!(visible("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn every_line_of_a_file_is_marked() {
        assert_eq!(quoted("a\n\tb\u{2028}\n\n"), "| a\n| \tb\\u{2028}\n| ");
        assert_eq!(quoted(""), "");
    }
}
