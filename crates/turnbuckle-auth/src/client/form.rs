//! Forms: `application/x-www-form-urlencoded`, as requests to authorization servers and their answers are written.

use crate::Scopes;

/// Pairs on their way into a body or a query.
#[derive(Clone, Default)]
pub(super) struct Form(String);

impl Form {
    /// What a request with such a body says about it.
    pub(super) const CONTENT_TYPE: &'static str = "application/x-www-form-urlencoded";

    /// Adds a pair.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: &str) -> Form {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        encode_into(&mut self.0, name);
        self.0.push('=');
        encode_into(&mut self.0, value);
        self
    }

    /// Adds a pair if there is a value.
    #[must_use]
    pub(super) fn with_some(self, name: &str, value: Option<&str>) -> Form {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Returns it as it is sent.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Returns scopes as a form has them; where nothing is asked for, the form says nothing.
pub(super) fn scope(scopes: Option<&Scopes>) -> Option<String> {
    let scopes = scopes.filter(|scopes| !scopes.is_empty())?;
    Some(scopes.to_string())
}

/// Writes a text as it stands in a form.
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

fn encode_into(encoded: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => {
                encoded.push('%');
                encoded.push(char::from(HEX[usize::from(byte >> 4)]));
                encoded.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
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
    fn what_means_something_in_a_form_is_escaped() {
        let form = Form::default().with("a b", "c&d=e+f%").with("ä", "~-._");

        assert_eq!(form.into_string(), "a%20b=c%26d%3De%2Bf%25&%C3%A4=~-._");
    }

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
