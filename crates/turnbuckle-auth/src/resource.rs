//! Whom a token is for: the URL of an MCP server, and when two of them mean the same.

use crate::place::Place;

/// Says whether two URLs name the same protected resource.
///
/// Scheme and host are compared without regard to case, the port that a scheme has anyway may be left out, and so may a slash at
/// the end. Everything else must be the same: another path is another resource.
///
/// ```
/// use turnbuckle_auth::is_same_resource;
///
/// assert!(is_same_resource("https://a.example/mcp", "HTTPS://A.example:443/mcp/"));
/// assert!(!is_same_resource("https://a.example/mcp", "https://a.example/mcp/admin"));
/// assert!(!is_same_resource("https://a.example/mcp", "https://a.example.evil.example/mcp"));
/// ```
pub fn is_same_resource(one: &str, other: &str) -> bool {
    match (Place::parse(one), Place::parse(other)) {
        (Some(one), Some(other)) => canonical(one) == canonical(other),
        _ => false,
    }
}

fn canonical(place: Place<'_>) -> (String, &str, &str) {
    let origin = place.origin.to_ascii_lowercase();
    let usual_port = match origin.starts_with("https:") {
        true => ":443",
        false => ":80",
    };
    let origin = origin
        .strip_suffix(usual_port)
        .unwrap_or(&origin)
        .to_owned();
    let path = place.path.strip_suffix('/').unwrap_or(place.path);
    (origin, path, place.query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter_where_it_means_nothing() {
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
        assert!(!is_same_resource("x", "x"), "what is no URL is no resource");
    }
}
