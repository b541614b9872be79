//! The grammar of `_meta` keys.

/// Why a key cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaKeyError {
    /// The prefix is not a row of labels.
    #[error(
        "the prefix of a `_meta` key is labels joined by dots, each beginning with a letter and ending with a letter or digit"
    )]
    Prefix,
    /// The name has a character it cannot have.
    #[error(
        "the name of a `_meta` key begins and ends with a letter or digit, with only letters, digits, `-`, `_` and `.` between"
    )]
    Name,
    /// The specification keeps the prefix or the name for itself.
    #[error("the key is reserved by the specification")]
    Reserved,
}

/// Names without prefix that the specification gives a meaning.
const RESERVED_NAMES: [&str; 4] = [
    super::keys::PROGRESS_TOKEN,
    super::keys::TRACEPARENT,
    super::keys::TRACESTATE,
    super::keys::BAGGAGE,
];

/// Says whether an application may use a key.
pub(super) fn check(key: &str) -> Result<(), MetaKeyError> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !prefix.split('.').all(is_label)) {
        return Err(MetaKeyError::Prefix);
    }
    if !is_name(name) {
        return Err(MetaKeyError::Name);
    }
    let reserved = match prefix {
        Some(prefix) => is_reserved(prefix),
        None => RESERVED_NAMES.contains(&name),
    };
    if reserved {
        return Err(MetaKeyError::Reserved);
    }
    Ok(())
}

fn is_label(label: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match label.as_bytes() {
        [only] => only.is_ascii_alphabetic(),
        [first, middle @ .., last] => {
            first.is_ascii_alphabetic()
                && middle.iter().copied().all(inside)
                && last.is_ascii_alphanumeric()
        }
        [] => false,
    }
}

fn is_name(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match name.as_bytes() {
        // A prefix alone is a key. Without prefix it would be the empty string, which names nothing but is allowed.
        [] => true,
        [only] => only.is_ascii_alphanumeric(),
        [first, middle @ .., last] => {
            first.is_ascii_alphanumeric()
                && middle.iter().copied().all(inside)
                && last.is_ascii_alphanumeric()
        }
    }
}

/// Since 2025-11-25 the second label decides; before, the last but one did. Both are respected, so that what we
/// write is proper for every peer.
fn is_reserved(prefix: &str) -> bool {
    let owned = |label: Option<&str>| {
        label.is_some_and(|label| {
            label.eq_ignore_ascii_case("mcp") || label.eq_ignore_ascii_case("modelcontextprotocol")
        })
    };
    owned(prefix.split('.').nth(1)) || owned(prefix.rsplit('.').nth(1))
}
