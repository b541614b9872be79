//! Percent-encoding (RFC 3986, section 2).

/// The characters that are not encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PercentSet {
    /// Letters, digits and `-._~`.
    Unreserved,
    /// Also the delimiters of a URI, and triplets that are already encoded.
    Reserved,
}

/// Appends the encoded text.
pub(super) fn encode(text: &str, keep: PercentSet, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let kept = is_unreserved(byte)
            || keep == PercentSet::Reserved
                && (is_reserved(byte) || triplet(&bytes[at..]).is_some());
        if kept {
            out.push(byte.into());
        } else {
            out.push('%');
            out.push(HEX[usize::from(byte >> 4)].into());
            out.push(HEX[usize::from(byte & 15)].into());
        }
    }
}

/// Appends the decoded bytes of a text, or returns `None` for an invalid escape.
pub(super) fn decode(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            out.push(triplet(rest)?);
            rest = &rest[3..];
        } else {
            out.push(byte);
            rest = after;
        }
    }
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

pub(super) fn is_reserved(byte: u8) -> bool {
    b":/?#[]@!$&'()*+,;=".contains(&byte)
}

pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}
