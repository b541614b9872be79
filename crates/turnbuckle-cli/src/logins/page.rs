//! The page that somebody logs in at: looked at before anything is opened.

use std::net::IpAddr;

/// A page that may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page<'a> {
    /// Its whole address.
    pub(super) url: &'a str,
    /// The host in it, with its port.
    pub(super) host: &'a str,
}

impl<'a> Page<'a> {
    /// Looks at an address: `https`, or `http` on this machine; nobody's name in it, and nothing that nobody sees.
    pub(super) fn look_at(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let host = rest.split(['/', '?', '#', '\\']).next()?;
        let is_clean = url.bytes().all(|byte| byte.is_ascii_graphic());
        let is_plain = !host.is_empty() && !host.contains('@') && !url.contains('\\');
        let is_safe = match () {
            () if scheme.eq_ignore_ascii_case("https") => true,
            () if scheme.eq_ignore_ascii_case("http") => is_this_machine(host),
            () => false,
        };
        (is_clean && is_plain && is_safe).then_some(Self { url, host })
    }

    /// Says whether the host has letters that can pass for others.
    pub(super) fn may_look_like_another(&self) -> bool {
        let mut labels = self.host.split('.');
        labels.any(|label| {
            label
                .get(..4)
                .is_some_and(|begin| begin.eq_ignore_ascii_case("xn--"))
        })
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match bare.unwrap_or(name).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_by_tls_and_this_machine_may_be_opened() {
        for (url, host) in [
            ("https://auth.example/authorize?a=b", "auth.example"),
            ("HTTPS://auth.example:8443", "auth.example:8443"),
            ("http://127.0.0.1:8080/authorize", "127.0.0.1:8080"),
            ("http://[::1]:8080/", "[::1]:8080"),
            ("http://localhost/", "localhost"),
        ] {
            assert_eq!(Page::look_at(url), Some(Page { url, host }));
        }
    }

    #[test]
    fn everything_else_is_not_opened() {
        for url in [
            "http://auth.example/authorize",
            "http://127.0.0.1.auth.example/",
            "http://localhost.example/",
            "file:///etc/passwd",
            "javascript:alert(1)//x",
            "javascript://%0aalert(1)",
            "https://",
            "https:///path",
            "https://auth.example@evil.example/",
            "https://auth.example\\@evil.example/",
            "https://auth.example/\u{1b}[2J",
            "https://auth.example/a b",
            "https://аuth.example/",
            "-a",
            "",
        ] {
            assert_eq!(Page::look_at(url), None, "{url}");
        }
    }

    #[test]
    fn hosts_of_other_letters_are_pointed_out() {
        let odd = |url| Page::look_at(url).unwrap().may_look_like_another();

        assert!(odd("https://auth.XN--mnchen-3ya.example/"));
        assert!(!odd("https://auth.example/xn--"));
    }
}
