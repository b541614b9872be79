//! URLs of servers: stored as configured, and parsed once.

#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr, sync::Arc};

use ::http::{HeaderValue, Uri};
use turnbuckle_text::url::{HostPort, HttpScheme, parse_port, split_authority};

/// The URL of an endpoint: `http` or `https`, a host, no user information and no fragment.
///
/// Cheap to clone: every response stores its URL.
#[derive(Clone)]
pub(crate) struct Url(Arc<UrlParts>);

struct UrlParts {
    text: Box<str>,
    /// The offset of the path, after the authority.
    path: usize,
    uri: Uri,
    /// The path and the query.
    target: Uri,
    origin: UrlOrigin,
}

/// The origin of a URL: configured headers are never sent to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlOrigin {
    scheme: HttpScheme,
    /// In lower case.
    host: Arc<str>,
    port: u16,
}

/// A URL is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHttpUrl {
    /// The scheme is neither `http` nor `https`.
    #[error("a URL must start with `http://` or `https://`")]
    Scheme,
    /// The host is missing or invalid.
    #[error("a URL must have a valid host")]
    Host,
    /// The port is invalid.
    #[error("the port of a URL must be a number up to 65535")]
    Port,
    /// The URL contains a user name or a password; send secrets in a header.
    #[error("a URL must not contain a user name or password; use a header instead")]
    Userinfo,
    /// The URL has a fragment, which is not sent to a server.
    #[error("a URL must not have a fragment")]
    Fragment,
    /// The URL contains a character that must be percent-encoded.
    #[error("a URL must be ASCII, with other characters percent-encoded")]
    Character,
}

impl Url {
    /// Returns the URL as configured.
    pub(crate) fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the URI for a connector; cheap to clone.
    pub(crate) fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// Returns the request target: the path and the query.
    pub(crate) fn target(&self) -> &Uri {
        &self.0.target
    }

    pub(crate) fn origin(&self) -> &UrlOrigin {
        &self.0.origin
    }
}

impl UrlOrigin {
    /// Returns the host in lower case, an IPv6 address in brackets.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn is_https(&self) -> bool {
        self.scheme == HttpScheme::Https
    }

    /// Returns the value of `Host`, with the port unless it is the default.
    pub(crate) fn host_header(&self) -> HeaderValue {
        let host = if self.port == self.scheme.default_port() {
            HeaderValue::from_str(&self.host)
        } else {
            HeaderValue::try_from(format!("{}:{}", self.host, self.port))
        };
        host.expect("a host has only characters that are valid in a header")
    }
}

impl FromStr for Url {
    type Err = InvalidHttpUrl;

    fn from_str(text: &str) -> Result<Self, InvalidHttpUrl> {
        // Some parsers treat a backslash as a slash, others do not.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains('\\') {
            return Err(InvalidHttpUrl::Character);
        }
        let (scheme, rest) = HttpScheme::split(text).map_err(|_| InvalidHttpUrl::Scheme)?;
        if text.contains('#') {
            return Err(InvalidHttpUrl::Fragment);
        }
        let (authority, _) = split_authority(rest);
        let origin = UrlOrigin::parse(scheme, authority)?;
        let uri: Uri = text.parse().map_err(|_| InvalidHttpUrl::Character)?;
        let target = uri.path_and_query().cloned();
        Ok(Self(Arc::new(UrlParts {
            text: text.into(),
            path: text.len() - rest.len() + authority.len(),
            target: target.map_or_else(Uri::default, Uri::from),
            uri,
            origin,
        })))
    }
}

impl UrlOrigin {
    fn parse(scheme: HttpScheme, authority: &str) -> Result<Self, InvalidHttpUrl> {
        if authority.contains('@') {
            return Err(InvalidHttpUrl::Userinfo);
        }
        // Unlike `HostPort`, RFC 3986 allows an empty port and a name that ends with a dot; redirects may have them.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (authority, ""),
        };
        if !is_host(host) {
            return Err(InvalidHttpUrl::Host);
        }
        let port = match port {
            "" => scheme.default_port(),
            digits => parse_port(digits).map_err(|_| InvalidHttpUrl::Port)?,
        };
        Ok(Self {
            scheme,
            host: host.to_ascii_lowercase().into(),
            port,
        })
    }
}

/// Returns whether a text is a host without a port; a name may end with a dot.
fn is_host(text: &str) -> bool {
    let host: Result<HostPort, _> = text.strip_suffix('.').unwrap_or(text).parse();
    host.is_ok_and(|host| host.port.is_none())
}

/// Prints scheme, host and port.
impl fmt::Display for UrlOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port == self.scheme.default_port() {
            Ok(())
        } else {
            write!(f, ":{}", self.port)
        }
    }
}

/// Omits the query, which may contain keys.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.text.split_once('?') {
            Some((before, _)) => write!(f, "{before}?***"),
            None => f.write_str(&self.0.text),
        }
    }
}

impl Url {
    /// Resolves a reference, as RFC 3986, section 5.2 defines; a fragment is removed. Used for redirects and the
    /// `endpoint` event.
    pub(crate) fn resolve(&self, reference: &str) -> Result<Self, InvalidHttpUrl> {
        let reference = reference.trim_ascii();
        let reference = reference.split('#').next().unwrap_or_default();
        if has_scheme(reference) {
            return reference.parse();
        }
        let (before, own_path, own_query) = self.parts();
        if reference.starts_with("//") {
            let scheme = self.origin().scheme.as_str();
            return format!("{scheme}:{reference}").parse();
        }
        let (path, query) = split_query(reference);
        let path = match path {
            "" => own_path.to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => {
                let folder = own_path.rfind('/').map_or("/", |end| &own_path[..=end]);
                without_dots(&format!("{folder}{path}"))
            }
        };
        let query = match reference {
            "" => own_query,
            _ => query,
        };
        format!("{before}{path}{query}").parse()
    }

    /// Returns scheme and authority, the path, and the query with its question mark.
    fn parts(&self) -> (&str, &str, &str) {
        let (before, rest) = self.0.text.split_at(self.0.path);
        let (path, query) = split_query(rest);
        (before, path, query)
    }
}

fn split_query(text: &str) -> (&str, &str) {
    text.split_at(text.find('?').unwrap_or(text.len()))
}

/// Returns whether a reference is absolute: a scheme, followed by a colon.
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else {
        return false;
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(allowed)
}

/// Removes the segments `.` and `..`; the path does not leave the root.
fn without_dots(path: &str) -> String {
    let mut resolved: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                resolved.pop();
            }
            segment => {
                resolved.push(segment);
                continue;
            }
        }
        // A path that ends with a dot segment is a directory.
        if last {
            resolved.push("");
        }
    }
    format!("/{}", resolved.join("/"))
}
