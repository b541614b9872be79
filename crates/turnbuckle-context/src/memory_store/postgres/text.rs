//! Texts as PostgreSQL stores them.

use std::borrow::Cow;

/// Written before an escaped character.
const ESCAPE: char = '\u{e000}';

/// Escapes U+0000, which a text in PostgreSQL cannot contain.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => encoded.extend([ESCAPE, '0']),
            ESCAPE => encoded.extend([ESCAPE, '1']),
            other => encoded.push(other),
        }
    }
    Cow::Owned(encoded)
}

/// Returns the text that [`encode`] was given.
pub(super) fn decode(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut decoded = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => decoded.push(match characters.next() {
                Some('0') => '\0',
                _ => ESCAPE,
            }),
            other => decoded.push(other),
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_encoded_text_has_no_zero_and_is_decoded_as_it_was(text in "[\0\u{e000}01a]{0,12}|\\PC*") {
            let encoded = encode(&text).into_owned();
            prop_assert!(!encoded.contains('\0'));
            prop_assert_eq!(decode(encoded), text);
        }
    }
}
