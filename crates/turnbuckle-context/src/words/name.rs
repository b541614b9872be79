//! Names in a text: identifiers, paths through modules, paths of files.

use super::{scan::is_word, split::split_identifier};

/// What languages and file systems put between the words of one name. Not `:`, which `lib.rs:12` has before a line.
const SEPARATORS: [&str; 7] = ["::", ".", "-", "->", "/", "\\", "#"];

/// A run of words without a space between them, such as `open_file`, `Router::nest` or `src/lib.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameToken<'a> {
    text: &'a str,
}

impl<'a> NameToken<'a> {
    /// The name as it was written.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// The words that FTS5 sees in it.
    pub fn pieces(&self) -> impl Iterator<Item = &'a str> {
        super::scan::pieces(self.text)
    }

    /// The last word, which is what is defined: `nest` of `Router::nest`.
    pub fn last(&self) -> &'a str {
        let separator = |sign: char| !is_word(sign) && sign != '_';
        self.text.rsplit(separator).next().unwrap_or(self.text)
    }

    /// Whether it looks like something in code rather than a word of a sentence.
    pub fn is_identifier(&self) -> bool {
        let text = self.text;
        let inner = text.trim_start_matches('_');
        let joined = ["_", "::", ".", "->", "#"];
        let mixed =
            || split_identifier(inner).len() > 1 && !inner.contains('-') && !inner.contains('/');
        joined.iter().any(|separator| inner.contains(separator)) || mixed()
    }

    /// Whether it looks like the path of a file.
    pub fn is_path(&self) -> bool {
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

/// The length of the longest joint that the text begins with.
fn separator_len(text: &str) -> Option<usize> {
    let found = SEPARATORS
        .iter()
        .filter(|separator| text.starts_with(**separator));
    found.map(|separator| separator.len()).max()
}

fn is_part_of_name(sign: char) -> bool {
    is_word(sign) || sign == '_'
}
