//! Forms: `application/x-www-form-urlencoded`, as authorization servers are asked, and the one header that is made of them.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::Secret;

/// Pairs on their way into a body or a query.
#[derive(Clone, Default)]
pub(crate) struct Form(String);

impl Form {
    /// What a request with such a body says about it.
    pub(crate) const CONTENT_TYPE: &'static str = "application/x-www-form-urlencoded";

    /// Adds a pair.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Form {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        encode_into(&mut self.0, name);
        self.0.push('=');
        encode_into(&mut self.0, value);
        self
    }

    /// Returns it as it is sent.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// The header by which a client shows its secret (RFC 6749, section 2.3.1): id and secret are encoded as in a form before they
/// are joined.
pub(crate) fn basic(id: &str, secret: &Secret) -> Secret {
    let mut pair = String::new();
    encode_into(&mut pair, id);
    pair.push(':');
    encode_into(&mut pair, secret.expose());
    Secret::new(format!("Basic {}", STANDARD.encode(pair)))
}

/// Writes a text as it stands in a form.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_a_form_is_escaped() {
        let form = Form::default().with("a b", "c&d=e+f%").with("ä", "~-._");

        assert_eq!(form.into_string(), "a%20b=c%26d%3De%2Bf%25&%C3%A4=~-._");
    }

    #[test]
    fn a_secret_with_a_colon_in_it_is_still_one_secret() {
        let header = basic("desk", &Secret::new("a:b c"));

        assert_eq!(
            header.expose(),
            format!("Basic {}", STANDARD.encode("desk:a%3Ab%20c"))
        );
    }
}
