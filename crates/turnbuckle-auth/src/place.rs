//! URLs as OAuth compares them: as text, byte for byte, with nothing added.
//!
//! A library for URLs would write `https://a.example` as `https://a.example/`, and an issuer or a resource would no longer be
//! the one that was meant.

/// The parts of an `http` or `https` URL, as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    /// `https://a.example:8443`.
    pub(crate) origin: &'a str,
    /// `/tenant`, or nothing.
    pub(crate) path: &'a str,
    /// With its question mark, or nothing.
    pub(crate) query: &'a str,
}

impl<'a> Place<'a> {
    /// Takes a URL apart; `None` if it is none of `http` or `https`, or names no host, or has a user or a fragment.
    pub(crate) fn parse(url: &'a str) -> Option<Place<'a>> {
        let scheme = ["https://", "http://"].into_iter().find(|scheme| {
            let start = url.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })?;
        let is_plain = |byte: u8| {
            byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\\' | b'"' | b'<' | b'>')
        };
        if !url.bytes().all(is_plain) {
            return None;
        }
        let rest = &url[scheme.len()..];
        let authority = rest.find(['/', '?']).unwrap_or(rest.len());
        if authority == 0 || rest[..authority].starts_with(':') || rest[..authority].contains('@') {
            return None;
        }
        let (origin, rest) = url.split_at(scheme.len() + authority);
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        Some(Place {
            origin,
            path,
            query,
        })
    }

    /// The path, or nothing if it is only the slash that an empty path may have.
    pub(crate) fn path_below_root(&self) -> &'a str {
        match self.path {
            "/" => "",
            path => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_they_were_written() {
        let place = Place::parse("HTTPS://A.example:8443/x/?q=/a?b").unwrap();

        assert_eq!(place.origin, "HTTPS://A.example:8443");
        assert_eq!((place.path, place.query), ("/x/", "?q=/a?b"));

        let place = Place::parse("http://[::1]?q").unwrap();
        assert_eq!(
            (place.origin, place.path, place.query),
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
            assert_eq!(Place::parse(url), None, "{url:?}");
        }
    }
}
