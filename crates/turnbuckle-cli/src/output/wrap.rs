//! Wraps text by the display width of its characters.

use unicode_width::UnicodeWidthChar;

use super::style;

/// Returns the display width of text, without styles.
pub(crate) fn width(text: &str) -> usize {
    let shown = style::strip(text);
    shown.chars().map(columns).sum()
}

/// Wraps text at spaces, and within words that are longer than a line.
///
/// Returns one empty line for empty text. The text must not have styles: apply them to the lines.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = LineBuilder::new(width);
        for word in paragraph.split(' ') {
            line.push(word, &mut lines);
        }
        lines.push(line.text);
    }
    lines
}

/// Returns wrapped text with each line indented, except empty ones.
pub(crate) fn indented(text: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent).max(20);
    let line = |line: String| {
        if line.is_empty() {
            "\n".to_owned()
        } else {
            format!("{:indent$}{line}\n", "")
        }
    };
    lines(text, room).into_iter().map(line).collect()
}

/// The current line.
struct LineBuilder {
    text: String,
    used: usize,
    width: usize,
}

impl LineBuilder {
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
        for ch in word.chars() {
            if self.used + columns(ch) > self.width && !self.text.is_empty() {
                self.end(full);
            }
            self.text.push(ch);
            self.used += columns(ch);
        }
    }

    fn end(&mut self, full: &mut Vec<String>) {
        full.push(std::mem::take(&mut self.text));
        self.used = 0;
    }
}

fn columns(ch: char) -> usize {
    ch.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_fit_stay_whole() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
        assert_eq!(lines("a\n\nb", 7), ["a", "", "b"]);
        assert_eq!(lines("", 7), [""]);
    }

    #[test]
    fn a_word_longer_than_the_line_is_cut() {
        assert_eq!(lines("ab abcdefgh", 4), ["ab", "abcd", "efgh"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(lines("東京都", 4), ["東京", "都"]);
        assert_eq!(width("東京"), 4);
        assert_eq!(width(&style::styled(style::NAME, "ab")), 2);
    }
}
