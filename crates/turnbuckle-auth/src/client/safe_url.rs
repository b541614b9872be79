//! Validation of URLs that come from servers: `https`, or `http` on a loopback address, and unambiguous for every
//! parser.

use std::net::Ipv4Addr;

use super::oauth_error;
use crate::{AuthorizationError, AuthorizationStep, raw_url::RawUrl};

/// Maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Returns an error of this step if the URL must not be used. `what` describes the URL in the error.
pub(super) fn check(
    url: &str,
    step: AuthorizationStep,
    what: &str,
) -> Result<(), AuthorizationError> {
    match validate(url) {
        None => Ok(()),
        Some(validate) => {
            let shown = oauth_error::sanitize(url);
            Err(
                AuthorizationError::new(step, format!("the {what} `{shown}` {validate}"))
                    .with_hint("it must be an https URL, or http on a loopback address"),
            )
        }
    }
}

/// Returns whether the host is `localhost`, in 127.0.0.0/8 or `::1`.
pub(super) fn is_loopback(raw_url: &RawUrl<'_>) -> bool {
    let host = host(raw_url);
    let is_local_name = host.eq_ignore_ascii_case("localhost");
    let is_local_address = host
        .parse()
        .is_ok_and(|address: Ipv4Addr| address.is_loopback());
    is_local_name || is_local_address || host == "[::1]"
}

fn validate(url: &str) -> Option<&'static str> {
    if url.len() > MAX_URL_BYTES {
        return Some("is too long");
    }
    let Some(raw_url) = RawUrl::parse(url) else {
        return Some("is not a valid http or https URL");
    };
    // Not allowed by RFC 3986; shells, browsers and logs would interpret them differently.
    if url.contains(['`', '{', '}', '|', '^']) {
        return Some("has characters that are not allowed in URLs");
    }
    if !is_host(&raw_url) {
        return Some("has no valid host");
    }
    if is_https(&raw_url) || is_loopback(&raw_url) {
        None
    } else {
        Some("is not https")
    }
}

fn is_https(raw_url: &RawUrl<'_>) -> bool {
    raw_url
        .origin
        .get(..6)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

/// Returns the host and port.
fn authority<'a>(raw_url: &RawUrl<'a>) -> &'a str {
    let (_, authority) = raw_url.origin.split_once("//").unwrap_or_default();
    authority
}

/// Returns the host without the port; an IPv6 address keeps its brackets.
fn host<'a>(raw_url: &RawUrl<'a>) -> &'a str {
    let authority = authority(raw_url);
    let port = authority
        .rfind(':')
        .filter(|at| !authority[*at..].contains(']'));
    &authority[..port.unwrap_or(authority.len())]
}

/// Returns whether the host is a valid name or address and the port, if any, is valid.
fn is_host(raw_url: &RawUrl<'_>) -> bool {
    let host = host(raw_url);
    let port = &authority(raw_url)[host.len()..];
    let is_port = port.is_empty()
        || port
            .get(1..)
            .is_some_and(|port| port.parse::<u16>().is_ok());
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_usable = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.starts_with('-') && host.bytes().all(is_name),
    };
    is_port && is_usable
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
            assert_eq!(validate(url), None, "{url}");
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
            assert!(validate(url).is_some(), "{url:?}");
        }
        assert!(validate(&format!("https://as.example/{}", "a".repeat(MAX_URL_BYTES))).is_some());
    }
}
