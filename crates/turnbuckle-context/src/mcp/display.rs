//! Formatting of text for responses.

use std::{
    borrow::Cow,
    time::{Duration, UNIX_EPOCH},
};

use turnbuckle_text::sanitize::{escape_block, escape_line, is_unsafe};

/// Truncates a text to a maximum number of characters; a truncated text ends with `…`.
pub(crate) fn truncate(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some(_) => {
            let start: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", start.trim_end()).into()
        }
    }
}

/// Returns a text on one line, truncated to a maximum number of characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    // Stop collecting words once the line is full: a text may have a hundred thousand words.
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > most * 4 {
            break;
        }
    }
    truncate(&line, most).into_owned()
}

/// Formats a count with a noun: `1 file`, `2 files`.
pub(crate) fn plural(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// Formats milliseconds since 1970 as RFC 3339.
pub(crate) fn format_time(milliseconds: i64) -> String {
    let since = Duration::from_millis(milliseconds.max(0).unsigned_abs());
    // RFC 3339 ends with the year 9999; later times are clamped to its last second.
    const LAST: Duration = Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since.min(LAST)).to_string()
}

/// Escapes characters that break the line, change the direction of text or are invisible, so that the name fits on one line.
///
/// The name of a file, folder or branch can contain any character, including line breaks that imitate the next line of a
/// response. Text forms escape such names; structured content contains them unchanged.
pub(crate) fn sanitize(name: &str) -> Cow<'_, str> {
    if name.contains(is_unsafe) {
        escape_line(name).into()
    } else {
        name.into()
    }
}

/// Prefixes each line of a file with `| `, which no line of a response starts with, and escapes it except for tabs.
pub(crate) fn quote_lines(text: &str) -> String {
    let lines = text.lines().map(|line| format!("| {}", escape_block(line)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_truncated_at_a_character_boundary() {
        assert_eq!(truncate("größer", 10), "größer");
        assert_eq!(truncate("größer", 4), "grö…");
        assert_eq!(one_line("a\n  b\tc", 9), "a b c");
        assert_eq!(one_line(&"wörter ".repeat(1_000), 8), "wörter…");
    }

    #[test]
    fn times_out_of_range_are_clamped() {
        assert_eq!(format_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_time(-1), "1970-01-01T00:00:00Z");
        assert_eq!(format_time(i64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn line_breaks_and_bidi_characters_are_escaped() {
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
    fn every_line_of_a_file_is_prefixed() {
        assert_eq!(quote_lines("a\n\tb\u{2028}\n\n"), "| a\n| \tb\\u{2028}\n| ");
        assert_eq!(quote_lines(""), "");
    }
}
