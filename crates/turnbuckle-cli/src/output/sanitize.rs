//! Makes text of a peer safe for a terminal.
//!
//! Control characters, escape sequences, characters that change the writing direction and invisible characters are
//! shown as escapes such as `\u{1b}`.

pub(crate) use turnbuckle_text::sanitize::{
    escape_block as block, escape_line as line, first_line, is_unsafe,
};

/// Replaces the query of a URL by `***`, because it may contain a key.
pub(crate) fn redact_query(url: &str) -> String {
    match url.split_once('?') {
        Some((base, _)) => format!("{base}?***"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_escaped() {
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
    fn directional_and_invisible_characters_are_escaped() {
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
