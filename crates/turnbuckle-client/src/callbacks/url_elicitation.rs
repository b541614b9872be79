//! URL elicitation.
//!
//! This module does not open or fetch URLs: the user has to agree, and the program opens them.

use turnbuckle_protocol::{
    RpcError,
    types::{ElicitAction, ElicitUrlParams},
};
use turnbuckle_text::{
    formats::has_uri_characters,
    url::{HttpScheme, parse_port, split_authority},
};

/// A URL that the server asks the user to open.
///
/// Show the [`message`](Self::message), the whole [`url`](Self::url) and, separately, its [`host`](Self::host). Open
/// the URL only after the user agreed, where neither the model nor this program can see the page. The scheme is always
/// `http` or `https`; a URL with user information, invisible characters or other misleading parts is rejected before.
#[derive(Clone, Debug)]
pub struct UrlElicitationRequest {
    params: ElicitUrlParams,
    host: std::ops::Range<usize>,
}

impl UrlElicitationRequest {
    pub(crate) fn new(params: ElicitUrlParams) -> Result<Self, RpcError> {
        let host = host(&params.url).map_err(|reason| {
            RpcError::invalid_params(format!("this client does not open the URL: {reason}"))
        })?;
        Ok(Self { params, host })
    }

    /// Returns the message to the user.
    pub fn message(&self) -> &str {
        &self.params.message
    }

    /// Returns the whole URL, as received.
    pub fn url(&self) -> &str {
        &self.params.url
    }

    /// Returns the host of the URL, without the port.
    pub fn host(&self) -> &str {
        &self.params.url[self.host.clone()]
    }

    /// Returns whether the host has non-ASCII letters, also in Punycode: it may be confused with another host.
    pub fn has_confusable_host(&self) -> bool {
        let host = self.host();
        let mut labels = host.split('.');
        !host.is_ascii()
            || labels.any(|label| {
                let prefix = label.get(..4);
                prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case("xn--"))
            })
    }

    /// Returns the id of the elicitation, which a server of 2025-11-25 repeats when it is complete.
    pub fn elicitation_id(&self) -> Option<&str> {
        self.params.elicitation_id.as_deref()
    }
}

/// The decision of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElicitationAction {
    /// The user agreed, and the URL is being opened.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the request.
    Cancel,
}

impl From<ElicitationAction> for ElicitAction {
    fn from(action: ElicitationAction) -> Self {
        match action {
            ElicitationAction::Accept => Self::Accept,
            ElicitationAction::Decline => Self::Decline,
            ElicitationAction::Cancel => Self::Cancel,
        }
    }
}

/// Returns the range of the host in a URL that is safe to show and to open; the error gives the reason.
fn host(url: &str) -> Result<std::ops::Range<usize>, &'static str> {
    let (_, rest) = HttpScheme::split(url).map_err(|_| "the scheme is neither http nor https")?;
    let start = url.len() - rest.len();
    let (authority, _) = split_authority(rest);
    if !is_visible(rest) {
        return Err("it contains invalid characters");
    }
    if authority.contains('@') {
        return Err("it contains a user name, which can be mistaken for a host");
    }
    let host = without_port(authority).ok_or("the port is invalid")?;
    if !is_host(host) {
        return Err("the host is invalid");
    }
    Ok(start..start + host.len())
}

/// Returns whether a URL has only visible characters. Non-ASCII letters are allowed.
fn is_visible(text: &str) -> bool {
    text.split(|char: char| !char.is_ascii() && char.is_alphanumeric())
        .all(has_uri_characters)
}

fn without_port(authority: &str) -> Option<&str> {
    let end = authority.rfind(']').map_or(0, |end| end + 1);
    match authority[end..].find(':') {
        None => Some(authority),
        Some(colon) => {
            let (host, port) = authority.split_at(end + colon);
            parse_port(&port[1..]).ok().map(|_| host)
        }
    }
}

fn is_host(host: &str) -> bool {
    if let Some(inside) = host.strip_prefix('[') {
        let address = inside.strip_suffix(']');
        return address.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    }
    let is_letter = |char: char| char.is_alphanumeric() || "-._~".contains(char);
    let labels = host.strip_suffix('.').unwrap_or(host).split('.');
    host.chars().all(is_letter) && labels.into_iter().all(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elicitation(url: &str) -> Result<UrlElicitationRequest, RpcError> {
        UrlElicitationRequest::new(ElicitUrlParams::new("go there", url))
    }

    #[test]
    fn the_host_is_returned_separately() {
        for (url, host) in [
            ("https://example.com/a?b=c#d", "example.com"),
            ("HTTPS://Example.com", "Example.com"),
            ("http://localhost:8080/", "localhost"),
            ("http://[::1]:80/x", "[::1]"),
            (
                "https://example.com?next=https://other.example/@x",
                "example.com",
            ),
            ("https://münchen.example/straße", "münchen.example"),
            (
                "https://login.example.com.evil.example/",
                "login.example.com.evil.example",
            ),
        ] {
            assert_eq!(elicitation(url).unwrap().host(), host, "{url}");
        }
    }

    #[test]
    fn misleading_urls_are_rejected() {
        for url in [
            "",
            "example.com",
            "javascript:alert(1)",
            "JavaScript://example.com/%0aalert(1)",
            "file:///etc/passwd",
            "data:text/html,hi",
            "ms-msdt:/id",
            "ftp://example.com",
            "https:example.com",
            "https:///path",
            "https://:443/",
            "https://user@example.com/",
            "https://bank.example:pass@evil.example/",
            "https://bank.example\\@evil.example/",
            "https://example.com/a b",
            "https://example.com/\u{202e}moc.live",
            "https://exa\u{200b}mple.com/",
            "https://example.com/\n",
            " https://example.com/",
            "https://example.com:99999/",
            "https://example.com:+443/",
            "https://example.com:/",
            "https://example..com/",
            "https://[::1/",
            "https://%65xample.com/",
            "https://example.com/\"><script>",
            "https://example.com/$(calc)`",
        ] {
            let error = elicitation(url).expect_err(url);
            assert_eq!(error.code, -32602, "{url}");
        }
    }

    #[test]
    fn non_ascii_and_punycode_hosts_are_confusable() {
        let is_confusable = |url: &str| elicitation(url).unwrap().has_confusable_host();
        assert!(is_confusable("https://xn--mnchen-3ya.example/"));
        assert!(is_confusable("https://sub.XN--mnchen-3ya.example/"));
        assert!(is_confusable("https://münchen.example/"));
        assert!(!is_confusable("https://example.com/xn--path"));
    }
}
