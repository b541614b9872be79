//! URIs of skills.
//!
//! URIs are never converted to paths: a requested URI is looked up among the published ones.

use turnbuckle_text::percent::encode_segment;

/// The prefix of all skill URIs.
pub(super) const SCHEME: &str = "skill://";

/// Returns the URI of a path of names below the root.
pub(super) fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut uri = SCHEME.to_owned();
    for (at, name) in names.into_iter().enumerate() {
        if at > 0 {
            uri.push('/');
        }
        uri.push_str(&encode_segment(name));
    }
    uri
}

/// Returns the URI of a path inside of a folder.
pub(super) fn join(folder: &str, path: &str) -> String {
    let mut uri = folder.to_owned();
    for name in path.split('/') {
        uri.push('/');
        uri.push_str(&encode_segment(name));
    }
    uri
}

/// Returns the URI of the parent folder, unless it is the root.
pub(super) fn parent(uri: &str) -> Option<&str> {
    let (parent, _) = uri.rsplit_once('/')?;
    (parent.len() > SCHEME.len()).then_some(parent)
}

/// Returns whether a name is allowed in a path.
pub(super) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name
            .chars()
            .any(|char| char.is_control() || char == '/' || char == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_folders_found() {
        assert_eq!(from_names(["a b", "ü", "tea"]), "skill://a%20b/%C3%BC/tea");
        assert_eq!(
            join("skill://tea", "pots/100%.md"),
            "skill://tea/pots/100%25.md"
        );
        assert_eq!(parent("skill://tea/pots"), Some("skill://tea"));
        assert_eq!(parent("skill://tea"), None);
    }

    #[test]
    fn invalid_file_names_are_rejected() {
        for name in ["", ".", "..", "a/b", "a\\b", "a\0", "a\nb"] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_name("..a") && is_name("ü b.md"));
    }
}
