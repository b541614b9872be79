//! Path checks for `file:` URIs.

/// Returns whether the path of a `file:` URI contains `..` or `//`. Joining such a path would lead to a file outside of
/// the template.
///
/// Percent escapes are decoded first, as for the handler. Symbolic links are not checked here.
pub(super) fn escapes_root(uri: &str) -> bool {
    let Some(path) = uri.strip_prefix("file:") else {
        return false;
    };
    let path = percent_decode(path.strip_prefix("//").unwrap_or(path));
    let is_forbidden = |part: &[u8]| part == b".." || part.contains(&0) || part.contains(&b'\\');
    path.windows(2).any(|pair| pair == b"//") || path.split(|&byte| byte == b'/').any(is_forbidden)
}

/// Decodes percent escapes. An invalid escape is kept, and matches no template.
fn percent_decode(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = &rest[3..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_goes_where_it_says() {
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
    fn however_it_is_written_a_way_out_is_seen() {
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
