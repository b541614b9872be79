//! Forms, as far as only clients have to do with them: scopes in a request, and the answers of browsers.

use crate::{Scopes, form::encode_into};

pub(super) use crate::form::Form;

impl Form {
    /// Adds a pair if there is a value.
    #[must_use]
    pub(super) fn with_some(self, name: &str, value: Option<&str>) -> Form {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

/// Returns scopes as a form has them; where nothing is asked for, the form says nothing.
pub(super) fn scope(scopes: Option<&Scopes>) -> Option<String> {
    let scopes = scopes.filter(|scopes| !scopes.is_empty())?;
    Some(scopes.to_string())
}

/// Returns a text as it stands in a form.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    encode_into(&mut encoded, text);
    encoded
}

/// Reads pairs; what is encoded wrongly is taken as it stands.
pub(super) fn pairs(form: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = form.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, escaped(after)) {
            (b'%', Some(byte)) => (byte, &after[2..]),
            (b'+', _) => (b' ', after),
            (byte, _) => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The byte that two digits stand for.
fn escaped(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_encoded_wrongly_is_taken_as_it_stands() {
        let read: Vec<_> = pairs("a=%&b=%4&c=%zz&d&=e&&f=%ff").collect();

        let expected = [("a", "%"), ("b", "%4"), ("c", "%zz"), ("d", ""), ("", "e")];
        assert_eq!(read[..5], expected.map(|(a, b)| (a.into(), b.into())));
        assert_eq!(read[5], ("f".to_owned(), "\u{fffd}".to_owned()));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(name in ".*", value in ".*") {
            let form = Form::default().with(&name, &value).into_string();

            prop_assert_eq!(pairs(&form).collect::<Vec<_>>(), [(name, value)]);
        }

        #[test]
        fn anything_can_be_read(form in ".*") {
            pairs(&form).count();
        }
    }
}
