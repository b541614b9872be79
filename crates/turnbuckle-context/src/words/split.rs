//! Taking one identifier apart.

/// Splits an identifier where its writer joined words: `HTTPServer2_main` is `HTTP`, `Server`, `2`, `main`.
///
/// The parts keep their case. What is not a letter or a digit is left out.
///
/// ```
/// # use turnbuckle_context::words::split_identifier;
/// assert_eq!(split_identifier("parseJSONValue"), ["parse", "JSON", "Value"]);
/// assert_eq!(split_identifier("list-URLs_v12"), ["list", "URLs", "v", "12"]);
/// ```
pub fn split_identifier(identifier: &str) -> Vec<&str> {
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
    /// Small letters, and those that know no case.
    Lower,
    Digit,
    Other,
}

impl CharClass {
    /// `None` for an accent that belongs to the letter before it.
    fn from_char(sign: char) -> Option<Self> {
        if super::scan::is_accent(sign) {
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
        // The last capital of `HTTPServer` begins the next word; the `s` of `URLs` begins none.
        (CharClass::Upper, CharClass::Upper) => {
            let mut after = rest.chars().skip(1);
            after.next().is_some_and(char::is_lowercase) && !is_plural(rest)
        }
        (CharClass::Upper, CharClass::Lower) => false,
        (before, class) => before != class,
    }
}

/// Whether a capital is followed by an `s` with which the word ends.
fn is_plural(rest: &str) -> bool {
    let mut after = rest.chars().skip(1);
    after.next() == Some('s') && !after.next().is_some_and(char::is_lowercase)
}
