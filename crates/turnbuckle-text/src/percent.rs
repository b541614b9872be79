//! Percent-encoding (RFC 3986, section 2.1) and `application/x-www-form-urlencoded`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The media type of a [`Form`].
pub const FORM_CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// Everything but the unreserved characters: letters, digits and `-._~`.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// [`COMPONENT`] without the sub-delimiters, which a path segment may contain.
const SEGMENT: &AsciiSet = &COMPONENT
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// [`SEGMENT`] without `/`, `:` and `@`, which a path may contain.
const PATH: &AsciiSet = &SEGMENT.remove(b'/').remove(b':').remove(b'@');

/// Encodes everything but letters, digits and `-._~`: for query values and form fields.
pub fn encode_component(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}

/// Encodes a path segment; sub-delimiters such as `!` and `+` stay.
pub fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// Encodes a path with its slashes.
pub fn encode_path(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// Decodes escapes; malformed ones stay as they are.
pub fn decode(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}

/// Decodes escapes; `None` if one is malformed.
pub fn decode_strict(text: &str) -> Option<Vec<u8>> {
    has_valid_escapes(text).then(|| decode(text))
}

/// Returns whether two hexadecimal digits follow each `%`.
pub fn has_valid_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// An encoded query or form body, built pair by pair.
///
/// It does not implement `Debug`, because a body may contain tokens and passwords.
#[derive(Clone, Default)]
pub struct Form(String);

impl Form {
    /// Adds a pair.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.extend(utf8_percent_encode(name, COMPONENT));
        self.0.push('=');
        self.0.extend(utf8_percent_encode(value, COMPONENT));
        self
    }

    /// Adds a pair if there is a value.
    #[must_use]
    pub fn with_optional(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Returns the encoded text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Returns the decoded pairs of a query or form body; `+` is a space, and malformed escapes stay as they are.
pub fn form_pairs(form: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = form.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode_field(name), decode_field(value))
    })
}

/// Returns the decoded value of the first pair with this name.
pub fn form_value(form: &str, name: &str) -> Option<String> {
    let mut pairs = form_pairs(form);
    pairs.find_map(|(key, value)| (key == name).then_some(value))
}

fn decode_field(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_set_encodes_its_characters() {
        assert_eq!(encode_component("a b/ä~-._!"), "a%20b%2F%C3%A4~-._%21");
        assert_eq!(encode_segment("a/b c!+="), "a%2Fb%20c!+=");
        assert_eq!(encode_path("/a b/ü@c:d?"), "/a%20b/%C3%BC@c:d%3F");
    }

    #[test]
    fn malformed_escapes_stay_or_are_rejected() {
        assert_eq!(decode("a%2e%zz%"), b"a.%zz%");
        assert_eq!(decode_strict("a%2e"), Some(b"a.".to_vec()));
        for text in ["%", "%4", "%zz", "a%2"] {
            assert_eq!(decode_strict(text), None, "{text}");
        }
    }

    #[test]
    fn a_form_escapes_its_delimiters() {
        let form = Form::default()
            .with("a b", "c&d=e+f%")
            .with("ä", "~-._")
            .with_optional("none", None);

        assert_eq!(form.into_string(), "a%20b=c%26d%3De%2Bf%25&%C3%A4=~-._");
    }

    #[test]
    fn a_value_is_found_by_its_name() {
        let form = Form::default()
            .with("other", "1")
            .with("name", "a b&c=d%+\u{e9}/");
        let form = form.into_string();

        assert_eq!(
            form_value(&form, "name").as_deref(),
            Some("a b&c=d%+\u{e9}/")
        );
        assert_eq!(form_value(&form, "none"), None);
        assert_eq!(form_value("a=100%&b=%zz+x", "a").as_deref(), Some("100%"));
        assert_eq!(form_value("a=100%&b=%zz+x", "b").as_deref(), Some("%zz x"));
    }

    #[test]
    fn malformed_fields_are_read_as_they_are() {
        let pairs: Vec<_> = form_pairs("a=%&b=%4&c=%zz&d&=e&&f=%ff&g=x+y").collect();

        let expected = [
            ("a", "%"),
            ("b", "%4"),
            ("c", "%zz"),
            ("d", ""),
            ("", "e"),
            ("f", "\u{fffd}"),
            ("g", "x y"),
        ];
        assert_eq!(
            pairs,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    proptest! {
        #[test]
        fn encoded_text_is_decoded_to_itself(text in any::<String>()) {
            for encoded in [encode_component(&text), encode_segment(&text), encode_path(&text)] {
                prop_assert_eq!(decode_strict(&encoded), Some(text.as_bytes().to_vec()));
            }
        }

        #[test]
        fn a_form_is_read_as_it_was_written(name in any::<String>(), value in any::<String>()) {
            let form = Form::default().with(&name, &value).into_string();

            prop_assert_eq!(form_pairs(&form).collect::<Vec<_>>(), [(name, value)]);
        }

        #[test]
        fn any_form_can_be_read(form in any::<String>()) {
            form_pairs(&form).count();
        }
    }
}
