//! Where a server is: a URL, kept as it was given and understood once.

mod resolve;

#[cfg(test)]
mod tests;

use std::{fmt, net::Ipv6Addr, str::FromStr, sync::Arc};

use ::http::{HeaderValue, Uri};

/// The address of an endpoint: `http` or `https`, a host, no user and no fragment.
///
/// Cheap to clone: every response remembers where it came from.
#[derive(Clone)]
pub(crate) struct Url(Arc<Parts>);

struct Parts {
    text: Box<str>,
    /// Where the path begins, right after the authority.
    path: usize,
    uri: Uri,
    /// The path and the query alone.
    target: Uri,
    origin: Origin,
}

/// Whom a URL reaches: two that differ here are strangers to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: Scheme,
    /// In lower case.
    host: Arc<str>,
    port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// Why a text cannot be the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadUrl {
    /// Neither `http` nor `https`.
    #[error("a URL must begin with `http://` or `https://`")]
    Scheme,
    /// No host, or one that is neither a name nor an address.
    #[error("a URL must name a host")]
    Host,
    /// A port that is not one.
    #[error("the port of a URL must be a number up to 65535")]
    Port,
    /// A user, or even a password: what is secret belongs into a header.
    #[error("a URL must not hold a user or a password; send a header instead")]
    Userinfo,
    /// A fragment, which no server ever sees.
    #[error("a URL must not have a fragment")]
    Fragment,
    /// A space, a control character or anything else that has to be percent-encoded.
    #[error("a URL must be plain ASCII, with all else percent-encoded")]
    Character,
}

impl Url {
    /// Returns it as it was given.
    pub(crate) fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns what a connector wants to see; cheap to clone.
    pub(crate) fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// Returns what a request for it names: the path and the query.
    pub(crate) fn target(&self) -> &Uri {
        &self.0.target
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.0.origin
    }
}

impl Origin {
    /// Returns the host in lower case, an address of IPv6 in brackets.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn is_https(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// Returns what `Host` says: the port only where it is not the usual one.
    pub(crate) fn host_header(&self) -> HeaderValue {
        let host = match self.port == self.scheme.port() {
            true => HeaderValue::from_str(&self.host),
            false => HeaderValue::try_from(format!("{}:{}", self.host, self.port)),
        };
        host.expect("a host has no character that a header cannot hold")
    }
}

impl FromStr for Url {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        // A backslash is a slash to some readers and none to others.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains('\\') {
            return Err(BadUrl::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or(BadUrl::Scheme)?;
        let scheme = Scheme::from_str(scheme)?;
        if text.contains('#') {
            return Err(BadUrl::Fragment);
        }
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let origin = Origin::read(scheme, authority)?;
        let uri: Uri = text.parse().map_err(|_| BadUrl::Character)?;
        let target = uri.path_and_query().cloned();
        Ok(Self(Arc::new(Parts {
            text: text.into(),
            path: text.len() - rest.len() + authority.len(),
            target: target.map_or_else(Uri::default, Uri::from),
            uri,
            origin,
        })))
    }
}

impl FromStr for Scheme {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        if text.eq_ignore_ascii_case("https") {
            Ok(Self::Https)
        } else if text.eq_ignore_ascii_case("http") {
            Ok(Self::Http)
        } else {
            Err(BadUrl::Scheme)
        }
    }
}

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl Origin {
    fn read(scheme: Scheme, authority: &str) -> Result<Self, BadUrl> {
        if authority.contains('@') {
            return Err(BadUrl::Userinfo);
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (authority, ""),
        };
        if !is_host(host) {
            return Err(BadUrl::Host);
        }
        let port = match port {
            "" => scheme.port(),
            // A sign would be taken for part of the number.
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| BadUrl::Port)?
            }
            _ => return Err(BadUrl::Port),
        };
        Ok(Self {
            scheme,
            host: host.to_ascii_lowercase().into(),
            port,
        })
    }
}

/// Says whether a text is a name of letters, digits, `-`, `_` and dots, or an address in brackets.
fn is_host(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[') {
        let address = address.strip_suffix(']').unwrap_or_default();
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

/// Shows what it takes to know whom one talks to.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        match self.port == self.scheme.port() {
            true => Ok(()),
            false => write!(f, ":{}", self.port),
        }
    }
}

/// Leaves the query out, in which people put keys.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.text.split_once('?') {
            Some((before, _)) => write!(f, "{before}?***"),
            None => f.write_str(&self.0.text),
        }
    }
}
