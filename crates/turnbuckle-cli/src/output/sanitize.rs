//! Makes text of a peer safe for a terminal.
//!
//! Control characters, escape sequences, characters that change the writing direction and invisible characters are
//! shown as escapes such as `\u{1b}`.

use std::fmt::Write as _;

/// Returns text on one line; newlines and tabs are escaped.
pub(crate) fn line(text: &str) -> String {
    escape(text, |_| false)
}

/// Returns text with its newlines and tabs.
pub(crate) fn block(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    escape(&text, |ch| matches!(ch, '\n' | '\t'))
}

/// Returns the first line that is not empty.
pub(crate) fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    line(lines.find(|line| !line.is_empty()).unwrap_or_default())
}

/// Replaces the query of a URL by `***`, because it may contain a key.
pub(crate) fn redact_query(url: &str) -> String {
    match url.split_once('?') {
        Some((base, _)) => format!("{base}?***"),
        None => url.to_owned(),
    }
}

/// Returns whether a character acts on the terminal or is invisible.
pub(crate) fn is_unsafe(ch: char) -> bool {
    ch.is_control() || is_directional(ch) || is_invisible(ch)
}

/// Returns whether a character changes the writing direction or breaks the line.
fn is_directional(ch: char) -> bool {
    matches!(ch, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
}

/// Returns whether a character is invisible and could hide text. Emoji variation selectors are allowed.
fn is_invisible(ch: char) -> bool {
    matches!(
        ch,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2065}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn escape(text: &str, keep: fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            _ if keep(ch) || !is_unsafe(ch) => shown.push(ch),
            '\n' | '\r' | '\t' => shown.extend(ch.escape_default()),
            _ => {
                let _ = write!(shown, "{}", ch.escape_unicode());
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_and_not_obeyed() {
        insta::assert_snapshot!(line("\u{1b}[2Jgone\u{7}"), @r"\u{1b}[2Jgone\u{7}");
        insta::assert_snapshot!(line("\u{9b}31mred"), @r"\u{9b}31mred");
        insta::assert_snapshot!(block("\u{1b}]8;;http://evil\u{1b}\\here"), @r"\u{1b}]8;;http://evil\u{1b}\here");
    }

    #[test]
    fn a_block_keeps_its_lines_and_a_line_does_not() {
        assert_eq!(block("a\r\nb\tc"), "a\nb\tc");
        assert_eq!(line("a\r\nb\tc"), "a\\r\\nb\\tc");
        assert_eq!(block("50%\r100%"), "50%\\r100%");
    }

    #[test]
    fn directional_and_invisible_characters_are_shown() {
        insta::assert_snapshot!(line("user\u{202e}gpj.exe"), @r"user\u{202e}gpj.exe");
        insta::assert_snapshot!(line("pay\u{200b}pal\u{2066}\u{feff}\u{e0041}"), @r"pay\u{200b}pal\u{2066}\u{feff}\u{e0041}");
    }

    #[test]
    fn ordinary_characters_of_all_scripts_stay() {
        let text = "Blåbær, 東京, שלום, ❤\u{fe0f}, e\u{301}";
        assert_eq!(line(text), text);
    }

    #[test]
    fn the_first_line_with_text_is_found() {
        assert_eq!(first_line("\n\n  Forecasts.\n\nMore."), "Forecasts.");
        assert_eq!(first_line(""), "");
    }
}
