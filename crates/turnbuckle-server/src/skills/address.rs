//! From paths to addresses.
//!
//! There is no way back: what a request names is looked up among the addresses that were given out, never made into a
//! path.

use std::fmt::Write;

/// What all addresses of skills begin with.
pub(super) const SCHEME: &str = "skill://";

/// The address of what lies at a path of plain names below the root of all skills.
pub(super) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut uri = SCHEME.to_owned();
    for (at, name) in names.into_iter().enumerate() {
        if at > 0 {
            uri.push('/');
        }
        encode(name, &mut uri);
    }
    uri
}

/// The address of something inside a folder.
pub(super) fn below(folder: &str, path: &str) -> String {
    let mut uri = folder.to_owned();
    for name in path.split('/') {
        uri.push('/');
        encode(name, &mut uri);
    }
    uri
}

/// The folder that something is in, unless it is at the root.
pub(super) fn parent(uri: &str) -> Option<&str> {
    let (parent, _) = uri.rsplit_once('/')?;
    (parent.len() > SCHEME.len()).then_some(parent)
}

/// Says whether a name can be part of a path inside a skill, wherever that is kept.
pub(super) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name
            .chars()
            .any(|char| char.is_control() || char == '/' || char == '\\')
}

fn encode(name: &str, uri: &mut String) {
    for byte in name.bytes() {
        // Unreserved and sub-delims of RFC 3986: what a host name and a path segment both may have.
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            write!(uri, "%{byte:02X}").expect("a string takes all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_folders_found() {
        assert_eq!(of(["a b", "ü", "tea"]), "skill://a%20b/%C3%BC/tea");
        assert_eq!(
            below("skill://tea", "pots/100%.md"),
            "skill://tea/pots/100%25.md"
        );
        assert_eq!(parent("skill://tea/pots"), Some("skill://tea"));
        assert_eq!(parent("skill://tea"), None);
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for name in ["", ".", "..", "a/b", "a\\b", "a\0", "a\nb"] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_name("..a") && is_name("ü b.md"));
    }
}
