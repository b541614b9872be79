//! Hosts, ports and `http` URLs.
//!
//! Parsing is strict: a text that two readers could understand differently is an error. URLs keep their text, because issuers and
//! resources of OAuth are compared byte for byte and must not be normalized.

use std::{error::Error, fmt, net::IpAddr, str::FromStr};

/// A host name or IP address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An IP address.
    Ip(IpAddr),
    /// A name, in lower case.
    Name(String),
}

impl Host {
    /// Returns whether the host is `localhost`, in 127.0.0.0/8, or `::1`.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Ip(address) => address.to_canonical().is_loopback(),
            Self::Name(name) => name == "localhost",
        }
    }

    /// Returns whether a label of the name is punycode (`xn--`), so it may look like another name.
    pub fn is_internationalized(&self) -> bool {
        match self {
            Self::Ip(_) => false,
            Self::Name(name) => name.split('.').any(|label| label.starts_with("xn--")),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Ip(address) => write!(f, "{address}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A host with an optional port: `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// The port, if it is given.
    pub port: Option<u16>,
}

impl FromStr for HostPort {
    type Err = ParseUrlError;

    fn from_str(text: &str) -> Result<Self, ParseUrlError> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']').ok_or(ParseUrlError::Host)?;
                let address = address.parse().map_err(|_| ParseUrlError::Host)?;
                (Host::Ip(IpAddr::V6(address)), rest)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                (parse_name_or_v4(&text[..end])?, &text[end..])
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(parse_port(port)?),
            None if rest.is_empty() => None,
            None => return Err(ParseUrlError::Host),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// A trailing dot is rejected: it is another spelling of the same name, and clients do not send it. So is a leading `-`, because a program
/// could read it as an option.
fn parse_name_or_v4(text: &str) -> Result<Host, ParseUrlError> {
    if let Ok(address) = text.parse() {
        return Ok(Host::Ip(IpAddr::V4(address)));
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_allowed);
    if !text.starts_with('-') && text.split('.').all(is_label) {
        Ok(Host::Name(text.to_ascii_lowercase()))
    } else {
        Err(ParseUrlError::Host)
    }
}

/// Parses a port: digits only, while the standard parser also accepts `+80`.
pub fn parse_port(text: &str) -> Result<u16, ParseUrlError> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| is_decimal);
    port.ok_or(ParseUrlError::Port)
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpScheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl HttpScheme {
    /// Returns the name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns the default port.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// Splits a URL after `http://` or `https://`, in any case.
    pub fn split(url: &str) -> Result<(Self, &str), ParseUrlError> {
        let colon = url.find(':').ok_or(ParseUrlError::Scheme)?;
        let (scheme, rest) = url.split_at(colon);
        let rest = rest.strip_prefix("://").ok_or(ParseUrlError::Scheme)?;
        Ok((scheme.parse()?, rest))
    }
}

impl FromStr for HttpScheme {
    type Err = ParseUrlError;

    fn from_str(text: &str) -> Result<Self, ParseUrlError> {
        if text.eq_ignore_ascii_case("https") {
            Ok(Self::Https)
        } else if text.eq_ignore_ascii_case("http") {
            Ok(Self::Http)
        } else {
            Err(ParseUrlError::Scheme)
        }
    }
}

/// Splits the text after `://` into the authority and the rest, which starts at `/`, `?` or `#`. Neither part is checked.
pub fn split_authority(text: &str) -> (&str, &str) {
    text.split_at(text.find(['/', '?', '#']).unwrap_or(text.len()))
}

/// Returns whether a URL sends plain text over a network: its scheme is `http` and its host is not known to be this machine.
///
/// Only scheme and host are parsed, so that a URL with a fragment or letters beyond ASCII can be judged too.
pub fn is_plain_http_over_network(url: &str) -> bool {
    let Ok((HttpScheme::Http, rest)) = HttpScheme::split(url) else {
        return false;
    };
    let authority: Result<HostPort, _> = split_authority(rest).0.parse();
    !authority.is_ok_and(|authority| authority.host.is_loopback())
}

/// An `http` or `https` URL without user and fragment, and its parts as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl<'a> {
    /// The scheme.
    pub scheme: HttpScheme,
    /// The host and port, parsed.
    pub authority: HostPort,
    /// Scheme and authority as written: `https://A.example:8443`.
    pub origin: &'a str,
    /// The path as written: `/tenant`, or empty.
    pub path: &'a str,
    /// The query with its `?`, or empty.
    pub query: &'a str,
}

impl<'a> HttpUrl<'a> {
    /// Parses a URL.
    pub fn parse(url: &'a str) -> Result<Self, ParseUrlError> {
        // Some parsers read a backslash as a slash.
        let is_allowed =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>');
        if !url.bytes().all(is_allowed) {
            return Err(ParseUrlError::Character);
        }
        let (scheme, rest) = HttpScheme::split(url)?;
        if url.contains('#') {
            return Err(ParseUrlError::Fragment);
        }
        let (authority, _) = split_authority(rest);
        if authority.contains('@') {
            return Err(ParseUrlError::Userinfo);
        }
        let (origin, rest) = url.split_at(url.len() - rest.len() + authority.len());
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        Ok(Self {
            scheme,
            authority: authority.parse()?,
            origin,
            path,
            query,
        })
    }

    /// Returns whether the URL uses TLS or leads to this machine.
    pub fn is_https_or_loopback(&self) -> bool {
        self.scheme == HttpScheme::Https || self.authority.host.is_loopback()
    }

    /// Returns the port, or the default port of the scheme.
    pub fn port(&self) -> u16 {
        let port = self.authority.port;
        port.unwrap_or_else(|| self.scheme.default_port())
    }

    /// Returns whether scheme, host and port are the same.
    pub fn is_same_origin(&self, other: &HttpUrl<'_>) -> bool {
        self.scheme == other.scheme
            && self.authority.host == other.authority.host
            && self.port() == other.port()
    }

    /// Returns whether host and port are those of a `Host` header. A missing port is the default of this URL's scheme.
    pub fn is_at(&self, host: &HostPort) -> bool {
        let port = host.port.unwrap_or_else(|| self.scheme.default_port());
        self.authority.host == host.host && self.port() == port
    }

    /// Returns the path, or an empty text for `/`.
    pub fn path_without_root(&self) -> &'a str {
        if self.path == "/" { "" } else { self.path }
    }
}

/// The reason why a text is not a URL or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseUrlError {
    /// The scheme is neither `http` nor `https`.
    Scheme,
    /// The host is missing or malformed.
    Host,
    /// The port is not a number up to 65535.
    Port,
    /// There is a user or password.
    Userinfo,
    /// There is a fragment.
    Fragment,
    /// There is a character that must be percent-encoded.
    Character,
}

impl fmt::Display for ParseUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "expected `http://` or `https://`",
            Self::Host => "expected a host name or IP address with an optional port",
            Self::Port => "expected a port from 0 to 65535",
            Self::Userinfo => "a user or password is not allowed; send a header instead",
            Self::Fragment => "a fragment is not allowed",
            Self::Character => "expected ASCII with everything else percent-encoded",
        })
    }
}

impl Error for ParseUrlError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(text: &str) -> HostPort {
        text.parse().unwrap()
    }

    #[test]
    fn one_host_has_several_spellings() {
        assert_eq!(host("EXAMPLE.com:8080"), host("example.com:8080"));
        assert_eq!(host("[0:0:0:0:0:0:0:1]:80"), host("[::1]:80"));
        assert_eq!(host("[::1]:80").to_string(), "[::1]:80");
        assert_eq!(host("Example.com").to_string(), "example.com");
    }

    #[test]
    fn a_malformed_host_is_an_error() {
        for text in [
            "",
            ":80",
            "localhost:",
            "localhost:+80",
            "localhost:65536",
            "localhost:8o",
            "localhost.",
            "user@localhost",
            "localhost/",
            "local host",
            "localhost:80:80",
            "[::1",
            "[::1]80",
            "[localhost]",
            "::1",
            "lo\u{e9}",
            "-oProxyCommand",
            "a..example",
        ] {
            assert!(text.parse::<HostPort>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn loopback_hosts() {
        for (text, is_loopback) in [
            ("localhost", true),
            ("LOCALHOST:1", true),
            ("127.0.0.2:80", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost.example", false),
            ("127.0.0.1.example", false),
            ("0.0.0.0", false),
            ("[::]", false),
            ("192.168.0.1", false),
        ] {
            assert_eq!(host(text).host.is_loopback(), is_loopback, "{text}");
        }
    }

    #[test]
    fn internationalized_names_are_found() {
        assert!(
            host("auth.XN--mnchen-3ya.example")
                .host
                .is_internationalized()
        );
        assert!(!host("auth.example").host.is_internationalized());
        assert!(!host("axn--b.example").host.is_internationalized());
    }

    #[test]
    fn parts_are_as_written() {
        let url = HttpUrl::parse("HTTPS://A.example:8443/x/?q=/a?b").unwrap();

        assert_eq!(
            (url.scheme, url.origin),
            (HttpScheme::Https, "HTTPS://A.example:8443")
        );
        assert_eq!((url.path, url.query), ("/x/", "?q=/a?b"));
        assert_eq!(url.authority, host("a.example:8443"));

        let url = HttpUrl::parse("http://[::1]?q").unwrap();
        assert_eq!(
            (url.origin, url.path, url.query),
            ("http://[::1]", "", "?q")
        );
        assert!(url.is_https_or_loopback());
        assert!(
            !HttpUrl::parse("http://a.example/")
                .unwrap()
                .is_https_or_loopback()
        );
    }

    #[test]
    fn an_ambiguous_url_is_an_error() {
        use ParseUrlError::{Character, Fragment, Host, Port, Scheme, Userinfo};
        for (url, error) in [
            ("", Scheme),
            ("a.example", Scheme),
            ("ftp://a.example", Scheme),
            ("javascript:alert(1)", Scheme),
            ("javascript://%0aalert(1)", Scheme),
            ("https://", Host),
            ("https:///x", Host),
            ("https://:80/", Host),
            ("https://a.example:x/", Port),
            ("https://a.example:/", Port),
            ("https://user@a.example/", Userinfo),
            ("https://a.example\\@b.example/", Character),
            ("https://a.example/#x", Fragment),
            ("https://a.example/ x", Character),
            ("https://a.example/\n", Character),
            ("https://\u{e4}.example/", Character),
            ("https://a.example/\u{1b}[2J", Character),
            ("https://a.example/\"<x>", Character),
        ] {
            assert_eq!(HttpUrl::parse(url), Err(error), "{url:?}");
        }
    }

    #[test]
    fn one_origin_has_several_spellings() {
        let is_same_origin = |one, other| {
            let (one, other) = (HttpUrl::parse(one).unwrap(), HttpUrl::parse(other).unwrap());
            one.is_same_origin(&other)
        };

        assert!(is_same_origin(
            "https://a.example/x",
            "HTTPS://A.example:443/y?z"
        ));
        assert!(is_same_origin("http://[::1]:80", "http://[0:0::1]/"));
        for other in [
            "http://a.example",
            "https://b.example",
            "https://a.example:80",
        ] {
            assert!(!is_same_origin("https://a.example", other), "{other}");
        }
    }

    #[test]
    fn plain_http_over_a_network_is_found_by_scheme_and_host() {
        for (url, is_plain) in [
            ("http://a.example/", true),
            ("HTTP://a.example", true),
            ("http://localhost.evil.example/", true),
            ("http://127.0.0.1.evil.example/", true),
            ("http://localhost:80@evil.example/", true),
            ("http://localhost\\@evil.example/", true),
            ("http://", true),
            ("http://localhost", false),
            ("http://127.0.0.2:80/\u{e4}#x", false),
            ("http://[::1]?q", false),
            ("https://a.example/", false),
            ("com.example.app:/back", false),
        ] {
            assert_eq!(is_plain_http_over_network(url), is_plain, "{url}");
        }
    }

    #[test]
    fn a_url_is_compared_with_a_host_header() {
        let url = HttpUrl::parse("https://A.example/mcp").unwrap();

        assert!(url.is_at(&host("a.example")) && url.is_at(&host("a.example:443")));
        assert!(!url.is_at(&host("a.example:80")) && !url.is_at(&host("b.example")));
    }

    proptest! {
        #[test]
        fn a_parsed_url_is_its_parts(url in "https?://[a-z0-9.:\\[\\]]{0,12}[a-z/?=&.]{0,12}") {
            if let Ok(parsed) = HttpUrl::parse(&url) {
                prop_assert_eq!([parsed.origin, parsed.path, parsed.query].concat(), url);
            }
        }

        #[test]
        fn a_printed_host_is_parsed_to_itself(text in "[a-zA-Z0-9.:_\\[\\]-]{0,20}") {
            if let Ok(host) = text.parse::<HostPort>() {
                prop_assert_eq!(host.to_string().parse::<HostPort>(), Ok(host));
            }
        }
    }
}
