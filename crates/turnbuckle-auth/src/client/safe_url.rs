//! Which URLs of others are used at all: `https`, or `http` on this machine, and nothing that a program would read in another way.

use std::net::Ipv4Addr;

use crate::{Failure, Step, place::Place};

use super::told;

/// The longest URL that is used; no browser and no server need a longer one.
const MOST_BYTES: usize = 8 * 1024;

/// Says what is wrong with a URL that somebody else gave us, at the step that would have used it.
pub(super) fn check(url: &str, step: Step, what: &str) -> Result<(), Failure> {
    match objection(url) {
        None => Ok(()),
        Some(objection) => {
            let shown = told::shown(url);
            Err(
                Failure::new(step, format!("the {what} `{shown}` {objection}"))
                    .cure("it must be plain https, or http on this machine"),
            )
        }
    }
}

/// Says whether a URL is of this machine by its name: `localhost`, 127.0.0.0/8 or `::1`.
pub(super) fn is_loopback(place: &Place<'_>) -> bool {
    let host = host(place);
    let is_local_name = host.eq_ignore_ascii_case("localhost");
    let is_local_address = host
        .parse()
        .is_ok_and(|address: Ipv4Addr| address.is_loopback());
    is_local_name || is_local_address || host == "[::1]"
}

fn objection(url: &str) -> Option<&'static str> {
    if url.len() > MOST_BYTES {
        return Some("is too long");
    }
    let Some(place) = Place::parse(url) else {
        return Some("is no plain http or https URL");
    };
    // What RFC 3986 has in no URL: a shell, a browser or a log would each read it in its own way.
    if url.contains(['`', '{', '}', '|', '^']) {
        return Some("has characters that no URL has");
    }
    if !is_host(&place) {
        return Some("names no host");
    }
    match is_https(&place) || is_loopback(&place) {
        true => None,
        false => Some("is not https"),
    }
}

fn is_https(place: &Place<'_>) -> bool {
    place
        .origin
        .get(..6)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

/// What follows the slashes.
fn authority<'a>(place: &Place<'a>) -> &'a str {
    let (_, authority) = place.origin.split_once("//").unwrap_or_default();
    authority
}

/// The authority without its port; an address of IPv6 keeps its brackets.
fn host<'a>(place: &Place<'a>) -> &'a str {
    let authority = authority(place);
    let port = authority
        .rfind(':')
        .filter(|at| !authority[*at..].contains(']'));
    &authority[..port.unwrap_or(authority.len())]
}

/// Whether the host is a name or an address, and the port, if there is one, a number.
fn is_host(place: &Place<'_>) -> bool {
    let host = host(place);
    let port = &authority(place)[host.len()..];
    let is_port = port.is_empty()
        || port
            .get(1..)
            .is_some_and(|port| port.parse::<u16>().is_ok());
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_fine = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.starts_with('-') && host.bytes().all(is_name),
    };
    is_port && is_fine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_is_used_and_http_on_this_machine() {
        for url in [
            "https://as.example/authorize?tenant=a",
            "HTTPS://as.example:8443",
            "http://localhost:8080/x",
            "http://LOCALHOST/x",
            "http://127.0.0.1/x",
            "http://127.9.9.9:1/x",
            "http://[::1]:8080/x",
            "https://[2001:db8::1]/x",
        ] {
            assert_eq!(objection(url), None, "{url}");
        }
    }

    #[test]
    fn nothing_else_is_used() {
        for url in [
            "http://as.example/authorize",
            "http://10.0.0.1/x",
            "http://127.0.0.1.evil.example/x",
            "http://localhost.evil.example/x",
            "http://localhost@evil.example/x",
            "http://[::1].evil.example/x",
            "http://0x7f.1/x",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ms-msdt:/id",
            "data:text/html,x",
            "--flag",
            "-https://as.example",
            "https://-oProxyCommand/x",
            "https://as.example/$(calc)`id`",
            "https://as.example/\u{0}",
            "https://as.example/\n",
            "https://as.example/ x",
            "https://as.example:port/",
            "https://as.example:99999/",
            "https://%61s.example/",
            "https://[x]/",
            "https://as.example/#fragment",
            "https://as.example\\@evil.example/",
            "https:as.example",
            "https:/as.example",
            "//as.example",
            "",
        ] {
            assert!(objection(url).is_some(), "{url:?}");
        }
        assert!(objection(&format!("https://as.example/{}", "a".repeat(MOST_BYTES))).is_some());
    }
}
