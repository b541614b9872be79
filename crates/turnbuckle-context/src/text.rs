//! Text processing that searches in memory and in repositories share: tokens, identifiers and the fusion of rankings.

pub(crate) mod identifiers;
pub(crate) mod rank_fusion;
pub(crate) mod tokenize;

/// Returns the longest prefix of at most `max_bytes` bytes that ends at a character boundary.
pub(crate) fn byte_prefix(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
