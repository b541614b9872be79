//! Names in a text: identifiers, module paths and file paths.

use super::tokenize::is_word;

/// Separators between the words of a name. `:` is not one, because `lib.rs:12` contains a line number.
const SEPARATORS: [&str; 7] = ["::", ".", "-", "->", "/", "\\", "#"];

/// A name without spaces, such as `open_file`, `Router::nest` or `src/lib.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameToken<'a> {
    text: &'a str,
}

impl<'a> NameToken<'a> {
    /// Returns the name as written.
    pub(crate) fn as_str(&self) -> &'a str {
        self.text
    }

    /// Returns the FTS5 tokens of the name.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &'a str> {
        super::tokenize::pieces(self.text)
    }

    /// Returns the last word, which is the defined name: `nest` for `Router::nest`.
    pub(crate) fn last(&self) -> &'a str {
        let separator = |sign: char| !is_word(sign) && sign != '_';
        self.text.rsplit(separator).next().unwrap_or(self.text)
    }

    /// Returns whether it looks like an identifier rather than a word of a sentence.
    pub(crate) fn is_identifier(&self) -> bool {
        let text = self.text;
        let inner = text.trim_start_matches('_');
        let joined = ["_", "::", ".", "->", "#"];
        let mixed =
            || split_identifier(inner).len() > 1 && !inner.contains('-') && !inner.contains('/');
        joined.iter().any(|separator| inner.contains(separator)) || mixed()
    }

    /// Returns whether it looks like a file path.
    pub(crate) fn is_path(&self) -> bool {
        self.text.contains(['/', '\\'])
    }
}

pub(super) fn names(text: &str) -> impl Iterator<Item = NameToken<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let begin = rest.find(is_part_of_name)?;
        rest = &rest[begin..];
        let length = name_len(rest);
        let (name, after) = rest.split_at(length);
        rest = after;
        Some(NameToken { text: name })
    })
    .filter(|name| name.text.chars().any(char::is_alphanumeric))
}

fn name_len(text: &str) -> usize {
    let word = |from: &str| {
        from.find(|sign| !is_part_of_name(sign))
            .unwrap_or(from.len())
    };
    let mut length = word(text);
    while let Some(separator) = separator_len(&text[length..]) {
        let after = &text[length + separator..];
        match word(after) {
            0 => break,
            more => length += separator + more,
        }
    }
    length
}

/// Returns the length of the longest separator at the start of the text.
fn separator_len(text: &str) -> Option<usize> {
    let found = SEPARATORS
        .iter()
        .filter(|separator| text.starts_with(**separator));
    found.map(|separator| separator.len()).max()
}

fn is_part_of_name(sign: char) -> bool {
    is_word(sign) || sign == '_'
}

/// Splits an identifier into words: `HTTPServer2_main` becomes `HTTP`, `Server`, `2`, `main`.
///
/// The parts keep their case. Characters other than letters and digits are removed.
pub(crate) fn split_identifier(identifier: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut before = CharClass::Other;
    for (at, sign) in identifier.char_indices() {
        let class = CharClass::from_char(sign).unwrap_or(before);
        if starts_a_part(before, class, &identifier[at..]) {
            parts.push(&identifier[begin..at]);
            begin = at;
        }
        before = class;
    }
    parts.push(&identifier[begin..]);
    parts.retain(|part| part.chars().any(char::is_alphanumeric));
    parts
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Upper,
    /// Lower-case letters, and letters without case.
    Lower,
    Digit,
    Other,
}

impl CharClass {
    /// Returns `None` for a combining accent, which belongs to the previous letter.
    fn from_char(sign: char) -> Option<Self> {
        if super::tokenize::is_accent(sign) {
            None
        } else if sign.is_numeric() {
            Some(Self::Digit)
        } else if sign.is_uppercase() {
            Some(Self::Upper)
        } else if sign.is_alphabetic() {
            Some(Self::Lower)
        } else {
            Some(Self::Other)
        }
    }
}

fn starts_a_part(before: CharClass, class: CharClass, rest: &str) -> bool {
    match (before, class) {
        // The last capital in `HTTPS` of `HTTPServer` starts the next word; the `L` of `URLs` does not.
        (CharClass::Upper, CharClass::Upper) => {
            let mut after = rest.chars().skip(1);
            after.next().is_some_and(char::is_lowercase) && !is_plural(rest)
        }
        (CharClass::Upper, CharClass::Lower) => false,
        (before, class) => before != class,
    }
}

/// Returns whether a capital is followed by an `s` at the end of the word.
fn is_plural(rest: &str) -> bool {
    let mut after = rest.chars().skip(1);
    after.next() == Some('s') && !after.next().is_some_and(char::is_lowercase)
}
