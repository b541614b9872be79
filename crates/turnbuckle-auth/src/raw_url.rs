//! URLs as OAuth compares them: as text, byte for byte.
//!
//! A URL library would write `https://a.example` as `https://a.example/`, which is another issuer or resource
//! identifier.

/// The parts of an `http` or `https` URL, not normalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawUrl<'a> {
    /// For example `https://a.example:8443`.
    pub(crate) origin: &'a str,
    /// For example `/tenant`; may be empty.
    pub(crate) path: &'a str,
    /// The query with its question mark; may be empty.
    pub(crate) query: &'a str,
}

impl<'a> RawUrl<'a> {
    /// Splits a URL. Returns `None` if the scheme is not `http` or `https`, the host is missing, or there is a user or
    /// a fragment.
    pub(crate) fn parse(url: &'a str) -> Option<RawUrl<'a>> {
        let scheme = ["https://", "http://"].into_iter().find(|scheme| {
            let start = url.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })?;
        let is_allowed = |byte: u8| {
            byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\\' | b'"' | b'<' | b'>')
        };
        if !url.bytes().all(is_allowed) {
            return None;
        }
        let rest = &url[scheme.len()..];
        let authority = rest.find(['/', '?']).unwrap_or(rest.len());
        if authority == 0 || rest[..authority].starts_with(':') || rest[..authority].contains('@') {
            return None;
        }
        let (origin, rest) = url.split_at(scheme.len() + authority);
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        Some(RawUrl {
            origin,
            path,
            query,
        })
    }

    /// Returns the path, or an empty string if the path is `/`.
    pub(crate) fn path_below_root(&self) -> &'a str {
        match self.path {
            "/" => "",
            path => path,
        }
    }
}

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
    match (RawUrl::parse(one), RawUrl::parse(other)) {
        (Some(one), Some(other)) => canonical(one) == canonical(other),
        _ => false,
    }
}

fn canonical(raw_url: RawUrl<'_>) -> (String, &str, &str) {
    let origin = raw_url.origin.to_ascii_lowercase();
    let default_port = if origin.starts_with("https:") {
        ":443"
    } else {
        ":80"
    };
    let origin = origin
        .strip_suffix(default_port)
        .unwrap_or(&origin)
        .to_owned();
    let path = raw_url.path.strip_suffix('/').unwrap_or(raw_url.path);
    (origin, path, raw_url.query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_they_were_written() {
        let raw_url = RawUrl::parse("HTTPS://A.example:8443/x/?q=/a?b").unwrap();

        assert_eq!(raw_url.origin, "HTTPS://A.example:8443");
        assert_eq!((raw_url.path, raw_url.query), ("/x/", "?q=/a?b"));

        let raw_url = RawUrl::parse("http://[::1]?q").unwrap();
        assert_eq!(
            (raw_url.origin, raw_url.path, raw_url.query),
            ("http://[::1]", "", "?q")
        );
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_place() {
        for url in [
            "",
            "a.example",
            "ftp://a.example",
            "javascript:alert(1)",
            "https://",
            "https:///x",
            "https://:80/",
            "https://user@a.example/",
            "https://a.example\\@b.example/",
            "https://a.example/#x",
            "https://a.example/ x",
            "https://a.example/\n",
            "https://ä.example/",
        ] {
            assert_eq!(RawUrl::parse(url), None, "{url:?}");
        }
    }

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
        assert!(!is_same_resource("x", "x"), "not a URL");
    }
}
