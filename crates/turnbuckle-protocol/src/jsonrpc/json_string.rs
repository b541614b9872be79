//! JSON strings: finding their end, and decoding them.

use std::borrow::Cow;

/// Returns the decoded text of a JSON string, or `None` if the value is not a string.
///
/// `json` is the raw text of one value from a scanned message, quotes included. Borrows if the string is without escapes.
pub fn string_value(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    Some(unescape(inner))
}

/// Returns whether a text is the content of a JSON string as it is, without escapes.
pub fn needs_no_escapes(text: &str) -> bool {
    plain_length(text.as_bytes()) == text.len()
}

/// Decodes the escapes of a scanned string, passed without its quotes.
pub(crate) fn unescape(inner: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', inner.as_bytes()) else {
        return Cow::Borrowed(inner);
    };
    let mut text = String::with_capacity(inner.len());
    text.push_str(&inner[..first]);
    let mut rest = &inner[first..];
    while let Some(escape) = rest.strip_prefix('\\') {
        let (character, after) = one_escape(escape);
        text.push(character);
        let plain = memchr::memchr(b'\\', after.as_bytes()).unwrap_or(after.len());
        text.push_str(&after[..plain]);
        rest = &after[plain..];
    }
    Cow::Owned(text)
}

/// Decodes one escape after its backslash. Returns the character and the rest.
fn one_escape(escape: &str) -> (char, &str) {
    let mut characters = escape.chars();
    let character = match characters.next() {
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => return one_unicode_escape(characters.as_str()),
        Some(itself) => itself,
        None => char::REPLACEMENT_CHARACTER,
    };
    (character, characters.as_str())
}

/// Decodes the digits after `\u`, and the second half of a surrogate pair.
fn one_unicode_escape(digits: &str) -> (char, &str) {
    let unit = hex(digits);
    let rest = digits.get(4..).unwrap_or_default();
    if let Some(character) = char::from_u32(unit) {
        return (character, rest);
    }
    // The scanner accepts complete pairs only.
    let low = hex(rest.strip_prefix("\\u").unwrap_or_default());
    let joined = 0x1_0000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
    let character = char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER);
    (character, rest.get(6..).unwrap_or_default())
}

fn hex(digits: &str) -> u32 {
    let digits = digits.get(..4).unwrap_or_default();
    u32::from_str_radix(digits, 16).unwrap_or_default()
}

/// Counts the bytes before the next quote, backslash or control character.
///
/// Most strings are names and end within two 8-byte words.
#[inline]
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    for _ in 0..2 {
        let Some((word, after)) = rest.split_first_chunk() else {
            break;
        };
        let lanes = special_lanes(u64::from_le_bytes(*word));
        if lanes != 0 {
            return bytes.len() - rest.len() + lanes.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    bytes.len() - rest.len() + long_plain_length(rest)
}

/// Like [`plain_length`], optimized for long strings.
///
/// Arguments can be many kilobytes. The bytes of a block are classified without branches, so that the compiler emits
/// vector instructions.
#[inline(never)]
pub(super) fn long_plain_length(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((block, after)) = rest.split_first_chunk::<32>() {
        let marks = block.map(|byte| if is_special(byte) { 0xff } else { 0 });
        if marks != [0; 32] {
            return bytes.len() - rest.len() + first_mark(&marks);
        }
        rest = after;
    }
    let tail = rest.iter().position(|byte| is_special(*byte));
    bytes.len() - rest.len() + tail.unwrap_or(rest.len())
}

/// Sets the high bit of each special byte, exact up to the lowest one.
///
/// In each lane the high bit of `x - n` is set if the byte is below `n`; lanes above 0x7f are masked
/// out. A borrow reaches only lanes above a true hit.
fn special_lanes(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let control = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (control | quote | backslash) & !word & (ONES << 7)
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn first_mark(marks: &[u8; 32]) -> usize {
    let (halves, _) = marks.as_chunks::<16>();
    let zeros = |half: [u8; 16]| u128::from_le_bytes(half).trailing_zeros() as usize / 8;
    match zeros(halves[0]) {
        16 => 16 + zeros(halves[1]),
        place => place,
    }
}
