//! A URL that a server wants the user to visit.
//!
//! Nothing here opens or fetches it: that is for the user to allow and for the program to do.

use turnbuckle_protocol::{
    RpcError,
    types::{ElicitAction, ElicitUrlParams},
};

use super::form::has_uri_characters;

/// A URL that a server wants the user to visit.
///
/// Show the [`message`](Self::message), the whole [`url`](Self::url) and, apart from it, its [`host`](Self::host); ask;
/// and open it only after a yes, outside of what the model or this program can look into. Only `http` and `https` come
/// this far; a URL with a user name, an invisible character or anything else that misleads is refused before.
#[derive(Clone, Debug)]
pub struct VisitRequest {
    params: ElicitUrlParams,
    host: std::ops::Range<usize>,
}

impl VisitRequest {
    pub(crate) fn new(params: ElicitUrlParams) -> Result<Self, RpcError> {
        let host = host(&params.url).map_err(|reason| {
            RpcError::invalid_params(format!("this client opens no such URL: {reason}"))
        })?;
        Ok(Self { params, host })
    }

    /// Returns what the server tells the user.
    pub fn message(&self) -> &str {
        &self.params.message
    }

    /// Returns the whole URL, as the server wrote it.
    pub fn url(&self) -> &str {
        &self.params.url
    }

    /// Returns the host that the URL leads to, without the port.
    pub fn host(&self) -> &str {
        &self.params.url[self.host.clone()]
    }

    /// Says whether the host has letters beyond ASCII, also as Punycode: it may look like another.
    pub fn may_look_like_another(&self) -> bool {
        let host = self.host();
        let mut labels = host.split('.');
        !host.is_ascii()
            || labels.any(|label| {
                let prefix = label.get(..4);
                prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case("xn--"))
            })
    }

    /// Returns the name of the visit, by which a server of 2025-11-25 says that it is over.
    pub fn elicitation_id(&self) -> Option<&str> {
        self.params.elicitation_id.as_deref()
    }
}

/// What the user says to a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consent {
    /// Yes; the URL is being opened. What happens there is between the user and the server.
    Accept,
    /// No.
    Decline,
    /// Neither: the question was dismissed.
    Cancel,
}

impl From<Consent> for ElicitAction {
    fn from(consent: Consent) -> Self {
        match consent {
            Consent::Accept => Self::Accept,
            Consent::Decline => Self::Decline,
            Consent::Cancel => Self::Cancel,
        }
    }
}

/// Finds the host of a URL that can be shown and opened safely; the error says why it cannot.
fn host(url: &str) -> Result<std::ops::Range<usize>, &'static str> {
    let begin = ["https://", "http://"].into_iter().find_map(|scheme| {
        let begins = url.get(..scheme.len())?.eq_ignore_ascii_case(scheme);
        begins.then_some(scheme.len())
    });
    let begin = begin.ok_or("it is neither http nor https")?;
    let rest = &url[begin..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if !is_visible(rest) {
        return Err("it has characters that do not belong into a URL");
    }
    if authority.contains('@') {
        return Err("it has a user name, which can pass for a host");
    }
    let host = without_port(authority).ok_or("its port is none")?;
    if !is_host(host) {
        return Err("its host is none");
    }
    Ok(begin..begin + host.len())
}

/// Says whether a URL is what it looks like. Letters beyond ASCII are left as they are; what cannot be seen is not.
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
            port[1..].parse::<u16>().ok().map(|_| host)
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

    fn visit(url: &str) -> Result<VisitRequest, RpcError> {
        VisitRequest::new(ElicitUrlParams::new("go there", url))
    }

    #[test]
    fn the_host_is_shown_apart() {
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
            assert_eq!(visit(url).unwrap().host(), host, "{url}");
        }
    }

    #[test]
    fn urls_that_mislead_are_refused() {
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
            "https://example.com:/",
            "https://example..com/",
            "https://[::1/",
            "https://%65xample.com/",
            "https://example.com/\"><script>",
            "https://example.com/$(calc)`",
        ] {
            let error = visit(url).expect_err(url);
            assert_eq!(error.code, -32602, "{url}");
        }
    }

    #[test]
    fn hosts_beyond_ascii_are_pointed_out() {
        let looks = |url: &str| visit(url).unwrap().may_look_like_another();
        assert!(looks("https://xn--mnchen-3ya.example/"));
        assert!(looks("https://sub.XN--mnchen-3ya.example/"));
        assert!(looks("https://münchen.example/"));
        assert!(!looks("https://example.com/xn--path"));
    }
}
