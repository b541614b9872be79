//! Percent-encoding (RFC 3986, section 2).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The characters that are not encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PercentSet {
    /// Letters, digits and `-._~`.
    Unreserved,
    /// Also the delimiters of a URI, and triplets that are already encoded.
    Reserved,
}

/// Everything but the unreserved characters.
const NOT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Everything but the unreserved characters and the delimiters.
const NOT_RESERVED: &AsciiSet = &NOT_UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'#')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
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

/// Appends the encoded text.
pub(super) fn encode(text: &str, keep: PercentSet, out: &mut String) {
    match keep {
        PercentSet::Unreserved => out.extend(utf8_percent_encode(text, NOT_UNRESERVED)),
        PercentSet::Reserved => encode_without_triplets(text, out),
    }
}

/// Appends the text; delimiters and triplets stay.
fn encode_without_triplets(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.extend(utf8_percent_encode(&rest[..at], NOT_RESERVED));
        let is_triplet = triplet(&rest.as_bytes()[at..]).is_some();
        out.push_str(if is_triplet { "%" } else { "%25" });
        rest = &rest[at + 1..];
    }
    out.extend(utf8_percent_encode(rest, NOT_RESERVED));
}

/// Appends the decoded bytes of a text, or returns `None` for an invalid escape.
pub(super) fn decode(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let mut escapes = text.match_indices('%');
    if !escapes.all(|(at, _)| triplet(&text.as_bytes()[at..]).is_some()) {
        return None;
    }
    out.extend(percent_decode_str(text));
    Some(())
}

/// Decodes the percent-encoded triplet at the start of `bytes`.
pub(super) fn triplet(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_reserved(byte: u8) -> bool {
        b":/?#[]@!$&'()*+,;=".contains(&byte)
    }

    fn is_unreserved(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    }

    fn encoded(text: &str, keep: PercentSet) -> String {
        let mut out = String::new();
        encode(text, keep, &mut out);
        out
    }

    #[test]
    fn delimiters_and_triplets_stay_in_reserved_text() {
        let text = ":/?#[]@!$&'()*+,;= %20%zz%%41%é-._~";

        assert_eq!(
            encoded(text, PercentSet::Reserved),
            ":/?#[]@!$&'()*+,;=%20%20%25zz%25%41%25%C3%A9-._~"
        );
        assert_eq!(encoded("a/%20", PercentSet::Unreserved), "a%2F%2520");
    }

    #[test]
    fn an_invalid_escape_is_not_decoded() {
        for text in ["%", "%4", "a%zz", "%%41", "%+1"] {
            assert_eq!(decode(text, &mut Vec::new()), None, "{text}");
        }
    }

    proptest! {
        /// The definition, byte by byte.
        #[test]
        fn each_byte_is_kept_or_encoded(text in "[a-c%0-9 /:~é]{0,12}") {
            for keep in [PercentSet::Unreserved, PercentSet::Reserved] {
                let bytes = text.as_bytes();
                let expected: String = (0..bytes.len())
                    .map(|at| {
                        let byte = bytes[at];
                        let is_kept = is_unreserved(byte)
                            || keep == PercentSet::Reserved
                                && (is_reserved(byte) || triplet(&bytes[at..]).is_some());
                        if is_kept {
                            char::from(byte).to_string()
                        } else {
                            format!("%{byte:02X}")
                        }
                    })
                    .collect();

                prop_assert_eq!(encoded(&text, keep), expected);
            }
        }

        #[test]
        fn encoded_text_is_decoded_to_itself(text in any::<String>()) {
            let mut decoded = Vec::new();
            decode(&encoded(&text, PercentSet::Unreserved), &mut decoded).unwrap();

            prop_assert_eq!(decoded, text.into_bytes());
        }
    }
}
