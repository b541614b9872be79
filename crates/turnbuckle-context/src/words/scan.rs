//! The pieces that FTS5 sees in a text, and the parts it does not see in them.

use super::split::split_identifier;

/// The runs of letters and digits in a text: the tokens of FTS5, but for its idea of the newest scripts.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !is_word(sign))
        .filter(|piece| piece.chars().any(char::is_alphanumeric))
}

/// The parts of one piece, in lower case; nothing if it is a plain word, or a hash or an address, which has none.
pub(super) fn parts(piece: &str) -> Vec<String> {
    if piece.chars().any(is_unspaced) {
        return pairs(piece);
    }
    let parts = split_identifier(piece);
    if parts.len() < 2 || is_hash(piece) {
        return Vec::new();
    }
    let parts = parts.into_iter().filter(|part| !is_short(part));
    parts.map(str::to_lowercase).collect()
}

/// Every two neighbouring signs.
fn pairs(piece: &str) -> Vec<String> {
    let signs = piece.chars();
    signs
        .clone()
        .zip(signs.skip(1))
        .map(|(first, second)| [first, second].iter().collect())
        .collect()
}

/// Whether a word says too little to be looked for: one letter or digit. One Chinese character is a word.
pub(super) fn is_short(word: &str) -> bool {
    let mut signs = word.chars();
    match (signs.next(), signs.next()) {
        (Some(sign), None) => !is_unspaced(sign),
        (None, _) => true,
        _ => false,
    }
}

/// Whether this is a number in hexadecimal digits rather than a word.
pub(super) fn is_hash(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let numbers = digits.bytes().filter(u8::is_ascii_digit).count();
    digits.len() >= 8 && numbers > 0 && digits.bytes().all(|sign| sign.is_ascii_hexdigit())
}

pub(super) fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || is_accent(sign)
}

/// Whether this is a mark on the letter before it, as decomposed text has them.
pub(super) fn is_accent(sign: char) -> bool {
    matches!(sign, '\u{300}'..='\u{36f}')
}

/// Whether this belongs to a script that puts no space between words: Chinese, Japanese, Korean.
fn is_unspaced(sign: char) -> bool {
    matches!(sign,
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}
