//! `application/x-www-form-urlencoded` bodies and queries, and the HTTP Basic header of OAuth clients, which uses the
//! same encoding.

use base64::{Engine as _, engine::general_purpose::STANDARD};

#[cfg(feature = "client")]
use crate::Scopes;
use crate::Secret;
/// Name-value pairs for a body or a query.
#[derive(Clone, Default)]
pub(crate) struct UrlEncodedForm(String);

impl UrlEncodedForm {
    /// The content type of such a body.
    pub(crate) const CONTENT_TYPE: &'static str = "application/x-www-form-urlencoded";

    /// Adds a pair.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> UrlEncodedForm {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        encode_into(&mut self.0, name);
        self.0.push('=');
        encode_into(&mut self.0, value);
        self
    }

    /// Adds a pair if there is a value.
    #[cfg(feature = "client")]
    #[must_use]
    pub(crate) fn with_optional(self, name: &str, value: Option<&str>) -> UrlEncodedForm {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Returns the encoded form.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// Returns the `Authorization` header of `client_secret_basic` (RFC 6749, section 2.3.1). Id and secret are
/// form-encoded before they are joined.
pub(crate) fn basic_auth_header(id: &str, secret: &Secret) -> Secret {
    let mut pair = String::new();
    encode_into(&mut pair, id);
    pair.push(':');
    encode_into(&mut pair, secret.expose());
    Secret::new(format!("Basic {}", STANDARD.encode(pair)))
}

/// Appends the percent-encoded text.
pub(crate) fn encode_into(encoded: &mut String, text: &str) {
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

/// Returns the value of the `scope` parameter; `None` without scopes.
#[cfg(feature = "client")]
pub(crate) fn scope_value(scopes: Option<&Scopes>) -> Option<String> {
    let scopes = scopes.filter(|scopes| !scopes.is_empty())?;
    Some(scopes.to_string())
}

/// Returns the percent-encoded text.
#[cfg(feature = "client")]
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    encode_into(&mut encoded, text);
    encoded
}

/// Parses pairs; invalid percent-encoding is kept as it is.
#[cfg(feature = "client")]
pub(crate) fn pairs(form: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = form.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

#[cfg(feature = "client")]
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, decode_hex_pair(after)) {
            (b'%', Some(byte)) => (byte, &after[2..]),
            (b'+', _) => (b' ', after),
            (byte, _) => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Decodes two hexadecimal digits.
#[cfg(feature = "client")]
fn decode_hex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_means_something_in_a_form_is_escaped() {
        let form = UrlEncodedForm::default()
            .with("a b", "c&d=e+f%")
            .with("ä", "~-._");

        assert_eq!(form.into_string(), "a%20b=c%26d%3De%2Bf%25&%C3%A4=~-._");
    }

    #[test]
    fn a_secret_with_a_colon_in_it_is_still_one_secret() {
        let header = basic_auth_header("desk", &Secret::new("a:b c"));

        assert_eq!(
            header.expose(),
            format!("Basic {}", STANDARD.encode("desk:a%3Ab%20c"))
        );
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
            let form = UrlEncodedForm::default().with(&name, &value).into_string();

            prop_assert_eq!(pairs(&form).collect::<Vec<_>>(), [(name, value)]);
        }

        #[test]
        fn anything_can_be_read(form in ".*") {
            pairs(&form).count();
        }
    }
}
