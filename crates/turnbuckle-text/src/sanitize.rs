//! Makes text of a peer safe to print on a terminal or in a report.
//!
//! Control characters, escape sequences, characters that change the direction of text and invisible characters are replaced by
//! escapes such as `\u{1b}`. This is the only table of such characters in the workspace.

use std::fmt::Write;

/// Returns whether a character acts on a terminal, changes the direction of text, or is invisible.
///
/// The variation selectors of emoji and combining accents are safe.
pub fn is_unsafe(character: char) -> bool {
    character.is_control() || changes_direction(character) || is_invisible(character)
}

/// Returns the text on one line: unsafe characters, line ends and tabs are escaped.
pub fn escape_line(text: &str) -> String {
    escape(text, |_| false)
}

/// Returns the text with its line ends and tabs; all other unsafe characters are escaped. `\r\n` becomes `\n`.
pub fn escape_block(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    escape(&text, |character| matches!(character, '\n' | '\t'))
}

/// Returns the first line that is not blank, trimmed, on one line.
pub fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    escape_line(lines.find(|line| !line.is_empty()).unwrap_or_default())
}

/// Returns at most `max_chars` characters of the text on one line, for error messages.
///
/// Runs of white space become one space, and unsafe characters are removed.
pub fn excerpt(text: &str, max_chars: usize) -> String {
    let words = text
        .split(char::is_whitespace)
        .map(|word| word.replace(is_unsafe, ""));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let mut line = words.join(" ");
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
    }
    line
}

/// Changes the direction of text, or breaks the line.
fn changes_direction(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
}

/// Has no width, so text can hide in it. Unassigned characters and noncharacters of such blocks are included.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
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
            | '\u{fff0}'..='\u{fffc}'
            | '\u{fffe}'..='\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn escape(text: &str, keep: fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if keep(character) || !is_unsafe(character) => escaped.push(character),
            '\n' | '\r' | '\t' => escaped.extend(character.escape_default()),
            _ => write!(escaped, "{}", character.escape_unicode())
                .expect("writing to a string does not fail"),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_are_escaped() {
        assert_eq!(escape_line("\u{1b}[2Jgone\u{7}"), r"\u{1b}[2Jgone\u{7}");
        assert_eq!(escape_line("\u{9b}31mred"), r"\u{9b}31mred");
        assert_eq!(
            escape_block("\u{1b}]8;;http://evil\u{1b}\\here"),
            r"\u{1b}]8;;http://evil\u{1b}\here"
        );
    }

    #[test]
    fn a_block_keeps_its_lines_and_a_line_does_not() {
        assert_eq!(escape_block("a\r\nb\tc"), "a\nb\tc");
        assert_eq!(escape_line("a\r\nb\tc"), "a\\r\\nb\\tc");
        assert_eq!(escape_block("50%\r100%"), "50%\\r100%");
    }

    #[test]
    fn direction_marks_and_invisible_characters_are_escaped() {
        assert_eq!(escape_line("user\u{202e}gpj.exe"), r"user\u{202e}gpj.exe");
        assert_eq!(
            escape_line("pay\u{200b}pal\u{2066}\u{feff}\u{e0041}"),
            r"pay\u{200b}pal\u{2066}\u{feff}\u{e0041}"
        );
    }

    /// The ranges of the tables that the command line, the checker and the client used before there was one table.
    #[test]
    fn the_table_contains_each_earlier_table() {
        let cli: &[_] = &[
            '\u{ad}'..='\u{ad}',
            '\u{34f}'..='\u{34f}',
            '\u{61c}'..='\u{61c}',
            '\u{115f}'..='\u{1160}',
            '\u{17b4}'..='\u{17b5}',
            '\u{180b}'..='\u{180f}',
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2060}'..='\u{206f}',
            '\u{3164}'..='\u{3164}',
            '\u{fe00}'..='\u{fe0d}',
            '\u{feff}'..='\u{feff}',
            '\u{ffa0}'..='\u{ffa0}',
            '\u{fff0}'..='\u{fffb}',
            '\u{e0000}'..='\u{e0fff}',
        ];
        let checker: &[_] = &[
            '\u{ad}'..='\u{ad}',
            '\u{61c}'..='\u{61c}',
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2060}'..='\u{206f}',
            '\u{feff}'..='\u{feff}',
            '\u{fff0}'..='\u{fffc}',
            '\u{fffe}'..='\u{ffff}',
            '\u{e0000}'..='\u{e0fff}',
        ];
        let client: &[_] = &[
            '\u{200b}'..='\u{200f}',
            '\u{202a}'..='\u{202e}',
            '\u{2060}'..='\u{2069}',
            '\u{feff}'..='\u{feff}',
        ];
        let control: &[_] = &['\0'..='\u{1f}', '\u{7f}'..='\u{9f}'];
        for range in [cli, checker, client, control].concat() {
            for character in range {
                assert!(is_unsafe(character), "{}", character.escape_unicode());
            }
        }
    }

    /// The authorization client had a list of allowed characters, so it escaped these, too.
    #[test]
    fn invisible_format_characters_of_other_blocks_are_unsafe() {
        for character in "\u{1bca0}\u{1bca3}\u{1d173}\u{1d17a}".chars() {
            assert!(is_unsafe(character), "{}", character.escape_unicode());
        }
    }

    #[test]
    fn ordinary_characters_of_all_scripts_stay() {
        let text = "Blåbær, 東京, שלום, ❤\u{fe0f}, e\u{301}";

        assert_eq!(escape_line(text), text);
    }

    #[test]
    fn the_first_line_with_text_is_found() {
        assert_eq!(first_line("\n\n  Forecasts.\n\nMore."), "Forecasts.");
        assert_eq!(first_line(""), "");
    }

    #[test]
    fn an_excerpt_is_short_and_on_one_line() {
        assert_eq!(excerpt(" a\r\n\tb \u{1b}[31mc\u{202e} ", 80), "a b [31mc");
        assert_eq!(excerpt("äöü", 2), "äö");
        assert_eq!(excerpt("\u{200b}\n\u{7}", 2), "");
    }

    proptest! {
        #[test]
        fn no_unsafe_character_is_left(text in any::<String>()) {
            prop_assert!(!escape_line(&text).contains(is_unsafe));
            prop_assert!(!excerpt(&text, 40).contains(is_unsafe));
            prop_assert!(!escape_block(&text).replace(['\n', '\t'], "").contains(is_unsafe));
        }
    }
}
