//! Percent-encoding (RFC 3986, section 2).

/// Which characters stand for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Letters, digits and `-._~`.
    Unreserved,
    /// Also the delimiters of a URI, and what is percent-encoded already.
    Reserved,
}

/// Appends a text with all that has to be encoded.
pub(super) fn encode(text: &str, keep: Keep, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let kept = is_unreserved(byte)
            || keep == Keep::Reserved && (is_reserved(byte) || triplet(&bytes[at..]).is_some());
        if kept {
            out.push(byte.into());
        } else {
            out.push('%');
            out.push(HEX[usize::from(byte >> 4)].into());
            out.push(HEX[usize::from(byte & 15)].into());
        }
    }
}

/// Appends the decoded bytes of a text, or returns `None` for a broken escape.
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

/// Returns the byte that the percent-encoded triplet at the start of `bytes` stands for.
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
