//! Strings of JSON: where they end, and what they say.

use std::borrow::Cow;

/// Returns what a JSON string says, or `None` if the text is not a string.
///
/// `json` is the raw text of one value from a scanned message, quotes included. Without escapes the
/// answer borrows.
pub fn string_value(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    Some(unescape(inner))
}

/// Resolves the escapes of a scanned string, given without its quotes.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
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

/// Reads one escape after its backslash; returns the character and what follows.
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

/// Reads the digits after `\u`, and the second half of a surrogate pair where there is one.
fn one_unicode_escape(digits: &str) -> (char, &str) {
    let unit = hex(digits);
    let rest = digits.get(4..).unwrap_or_default();
    if let Some(character) = char::from_u32(unit) {
        return (character, rest);
    }
    // The scan let only whole pairs through; anything else would be a string it has not seen.
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
/// Eight at a time, since arguments of many kilobytes are mostly such bytes. In each lane the high bit
/// of `x - n` is set if the byte is below `n`; lanes above 0x7f are masked out. A borrow can only reach
/// lanes above a true hit, and only the lowest hit is used.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;

    fn hits(word: u64) -> u64 {
        let control = word.wrapping_sub(ONES * 0x20);
        let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
        let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
        (control | quote | backslash) & !word & HIGH
    }

    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let hits = hits(u64::from_le_bytes(*word));
        if hits != 0 {
            return index * 8 + hits.trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + tail.iter().position(special).unwrap_or(tail.len())
}
