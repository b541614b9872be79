//! Breaks text into lines by the width that its letters take on a terminal.

use unicode_width::UnicodeWidthChar;

use super::style;

/// Returns the columns that text takes, without its styles.
pub(crate) fn width(text: &str) -> usize {
    let shown = style::without(text);
    shown.chars().map(columns).sum()
}

/// Breaks text at spaces, and within words that are longer than a line.
///
/// Returns one empty line for empty text. Knows no styles: paint the lines afterwards.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = Line::new(width);
        for word in paragraph.split(' ') {
            line.push(word, &mut lines);
        }
        lines.push(line.text);
    }
    lines
}

/// Returns wrapped text with spaces before each line that is not empty.
pub(crate) fn indented(text: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent).max(20);
    let line = |line: String| match line.is_empty() {
        true => "\n".to_owned(),
        false => format!("{:indent$}{line}\n", ""),
    };
    lines(text, room).into_iter().map(line).collect()
}

/// The line that is being filled.
struct Line {
    text: String,
    used: usize,
    width: usize,
}

impl Line {
    fn new(width: usize) -> Self {
        Self {
            text: String::new(),
            used: 0,
            width: width.max(1),
        }
    }

    fn push(&mut self, word: &str, full: &mut Vec<String>) {
        let space = usize::from(!self.text.is_empty());
        let wide: usize = word.chars().map(columns).sum();
        if self.used + space + wide <= self.width {
            self.text.extend(std::iter::repeat_n(' ', space));
            self.text.push_str(word);
            self.used += space + wide;
            return;
        }
        if !self.text.is_empty() {
            self.end(full);
        }
        for letter in word.chars() {
            if self.used + columns(letter) > self.width && !self.text.is_empty() {
                self.end(full);
            }
            self.text.push(letter);
            self.used += columns(letter);
        }
    }

    fn end(&mut self, full: &mut Vec<String>) {
        full.push(std::mem::take(&mut self.text));
        self.used = 0;
    }
}

fn columns(letter: char) -> usize {
    letter.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_where_they_fit() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
        assert_eq!(lines("a\n\nb", 7), ["a", "", "b"]);
        assert_eq!(lines("", 7), [""]);
    }

    #[test]
    fn a_word_longer_than_the_line_is_cut() {
        assert_eq!(lines("ab abcdefgh", 4), ["ab", "abcd", "efgh"]);
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(lines("東京都", 4), ["東京", "都"]);
        assert_eq!(width("東京"), 4);
        assert_eq!(width(&style::paint(style::NAME, "ab")), 2);
    }
}
