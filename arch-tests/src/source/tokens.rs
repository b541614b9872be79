//! Splits code into tokens with line numbers.

/// A word (name, keyword, number) or one punctuation character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Token<'a> {
    /// The text.
    pub text: &'a str,
    /// The line number, from 1.
    pub line: usize,
}

/// Splits code without comments and strings into tokens; `::` is one.
pub fn tokens(code: &str) -> Vec<Token<'_>> {
    let lines = code.lines().enumerate();
    lines
        .flat_map(|(index, line)| {
            split(line).map(move |text| Token {
                text,
                line: index + 1,
            })
        })
        .collect()
}

fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim_start();
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let length = match first {
            _ if is_word(first) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after.trim_start();
        Some(token)
    })
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_signs_are_distinct_tokens() {
        let code = "use std::env;\n  a_1!(é == 'b)";

        let texts: Vec<_> = tokens(code).iter().map(|token| token.text).collect();

        assert_eq!(
            texts,
            [
                "use", "std", "::", "env", ";", "a_1", "!", "(", "é", "=", "=", "'", "b", ")"
            ]
        );
        assert_eq!(tokens(code)[5].line, 2);
    }
}
