//! Resource identifiers, which are the audiences of tokens.

use turnbuckle_text::url::HttpUrl;

/// Returns whether two URLs identify the same protected resource.
///
/// Scheme and host are compared case-insensitively; the default port and a trailing slash may be omitted. Everything
/// else must be equal: another path is another resource.
///
/// ```
/// use turnbuckle_auth::is_same_resource;
///
/// assert!(is_same_resource("https://a.example/mcp", "HTTPS://A.example:443/mcp/"));
/// assert!(!is_same_resource("https://a.example/mcp", "https://a.example/mcp/admin"));
/// assert!(!is_same_resource("https://a.example/mcp", "https://a.example.evil.example/mcp"));
/// ```
pub fn is_same_resource(one: &str, other: &str) -> bool {
    match (HttpUrl::parse(one), HttpUrl::parse(other)) {
        (Ok(one), Ok(other)) => {
            one.is_same_origin(&other)
                && without_trailing_slash(one.path) == without_trailing_slash(other.path)
                && one.query == other.query
        }
        _ => false,
    }
}

fn without_trailing_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_default_port_and_trailing_slash_are_ignored() {
        for (one, other) in [
            ("http://a.example", "http://a.example/"),
            ("http://a.example:80/x", "http://A.EXAMPLE/x/"),
            ("https://a.example/x?y", "https://a.example:443/x?y"),
            ("http://[::1]:8080/mcp", "HTTP://[::1]:8080/mcp"),
        ] {
            assert!(is_same_resource(one, other), "{one} {other}");
        }
    }

    #[test]
    fn another_scheme_host_port_path_or_query_is_another_resource() {
        let one = "https://a.example/x";
        for other in [
            "http://a.example/x",
            "https://b.example/x",
            "https://a.example:8443/x",
            "https://a.example:80/x",
            "https://a.example/X",
            "https://a.example/x//",
            "https://a.example/x?y",
            "https://a.example/%78",
            "https://a.example/x#y",
            "https://user@a.example/x",
            "",
        ] {
            assert!(!is_same_resource(one, other), "{other}");
        }
        assert!(!is_same_resource("x", "x"), "not a URL");
    }
}
