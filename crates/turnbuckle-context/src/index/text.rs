//! Bytes as text, if they are text.

use std::borrow::Cow;

/// Of a text in an old code page at least so many hundredths are ASCII.
const MIN_ASCII_PERCENT: usize = 90;

/// Decodes UTF-8, UTF-16 with its mark, and what looks like the code page of Western Europe. `None` is no text.
pub(super) fn decode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => decode(rest),
        [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
        _ if bytes.contains(&0) => None,
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Some(Cow::Borrowed(text)),
            Err(_) => decode_latin1(bytes).map(Cow::Owned),
        },
    }
    .map(normalize_line_ends)
}

/// The first bytes of a text, as many as fit without cutting a character.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'_, str>> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok()
        .filter(|text| !text.contains('\0'))
        .map(Cow::Owned)
}

/// Source files of before 2000, whose comments have an accent now and then. Their signs are those of Unicode's beginning.
fn decode_latin1(bytes: &[u8]) -> Option<String> {
    let ascii = bytes.iter().filter(|byte| byte.is_ascii()).count();
    let is_control =
        |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    let is_text = ascii * 100 >= bytes.len() * MIN_ASCII_PERCENT && !bytes.iter().any(is_control);
    is_text.then(|| bytes.iter().map(|byte| char::from(*byte)).collect())
}

fn normalize_line_ends(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains("\r\n") {
        return Cow::Owned(text.replace("\r\n", "\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_usual_kind_is_read() {
        let table: [(&[u8], &str); 6] = [
            (b"plain", "plain"),
            ("é\n".as_bytes(), "é\n"),
            (b"\xef\xbb\xbfmark", "mark"),
            (b"\xff\xfea\0\r\0\n\0", "a\n"),
            (b"\xfe\xff\0a\0b", "ab"),
            (
                b"/* the caf\xe9 of the author */\r\n",
                "/* the café of the author */\n",
            ),
        ];
        for (bytes, text) in table {
            assert_eq!(decode(bytes).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let table: [&[u8]; 5] = [
            b"a\0b",
            b"\x89PNG\r\n\x1a\n",
            b"\xe4\xb8\xe4\xb8\xe4",
            b"\xff\xfe\0\xd8a\0",
            b"\xff\xfe\0\0",
        ];
        for bytes in table {
            assert_eq!(decode(bytes), None, "{bytes:x?}");
        }
    }
}
