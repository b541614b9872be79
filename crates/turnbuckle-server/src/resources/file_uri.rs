//! Path checks for `file:` URIs.

use turnbuckle_text::percent;

/// Returns whether the path of a `file:` URI contains `..` or `//`. Joining such a path would lead to a file outside of
/// the template.
///
/// Percent escapes are decoded first, as for the handler; an invalid escape is kept, and matches no template. Symbolic links are not checked here.
pub(super) fn escapes_root(uri: &str) -> bool {
    let Some(path) = uri.strip_prefix("file:") else {
        return false;
    };
    let path = percent::decode(path.strip_prefix("//").unwrap_or(path));
    let is_forbidden = |part: &[u8]| part == b".." || part.contains(&0) || part.contains(&b'\\');
    path.windows(2).any(|pair| pair == b"//") || path.split(|&byte| byte == b'/').any(is_forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_stays_below_the_root() {
        for uri in [
            "file:///docs/a.txt",
            "file:///docs/a..b/..c/d../.hidden/",
            "file://host/docs/%20",
            "file:docs/a",
            "note://../..//",
        ] {
            assert!(!escapes_root(uri), "{uri}");
        }
    }

    #[test]
    fn a_path_out_of_the_root_is_found_in_every_spelling() {
        for uri in [
            "file:///docs/../etc/passwd",
            "file:///docs/..",
            "file:///docs/%2e%2E/etc",
            "file:///docs/.%2e%2fetc",
            "file:///docs//etc/passwd",
            "file:///docs/%2Fetc/passwd",
            "file:///docs/..%5Cetc",
            "file:///docs/a\\b",
            "file:///docs/a%00.txt",
            "file:../etc",
        ] {
            assert!(escapes_root(uri), "{uri}");
        }
    }
}
