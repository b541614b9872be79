//! Who is let in at all: a check of `Host` and `Origin`, against pages that reach a local server through DNS.

use std::net::SocketAddr;

use ::http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{HOST, ORIGIN},
    request::Parts,
};

use super::{
    Options,
    allowed::{Host, Origin},
    body::Body,
    refusal,
};

/// Which hosts and origins are let in, worked out once.
pub(super) struct Gate {
    hosts: Vec<Host>,
    /// The spellings of `Host` that nearly every request has.
    usual: Vec<String>,
    origins: Vec<Origin>,
    any_host: bool,
    any_origin: bool,
}

impl Gate {
    pub(super) fn new(options: &Options, bound: Option<SocketAddr>) -> Self {
        let mut hosts = options.hosts.clone();
        hosts.extend(Host::this_machine());
        let mut usual = Vec::new();
        if let Some(bound) = bound {
            let port = bound.port();
            usual.extend([format!("127.0.0.1:{port}"), format!("localhost:{port}")]);
            if !bound.ip().is_unspecified() {
                hosts.push(Host::address(bound.ip()));
            }
        }
        Self {
            hosts,
            usual,
            origins: options.origins.clone(),
            any_host: options.any_host,
            any_origin: options.any_origin,
        }
    }

    /// Lets a request in, and returns the origin of the page that sent it, if it was one.
    pub(super) fn check(
        &self,
        parts: &Parts,
    ) -> Result<Option<HeaderValue>, ::http::Response<Body>> {
        self.check_host(parts)?;
        self.check_origin(&parts.headers)
    }

    fn check_host(&self, parts: &Parts) -> Result<(), ::http::Response<Body>> {
        if self.any_host || self.is_allowed_host(parts) {
            return Ok(());
        }
        let named = parts.headers.get(HOST);
        Err(refusal::plain(
            StatusCode::FORBIDDEN,
            format!(
                "this server does not answer to the host {}; if it should, allow it with `allow_host`",
                shown(named)
            ),
        ))
    }

    fn is_allowed_host(&self, parts: &Parts) -> bool {
        let Ok(header) = single(&parts.headers, &HOST) else {
            return false;
        };
        // HTTP/2 names the host in the target, and HTTP/1.1 may; two that differ are a trick.
        let target = parts.uri.authority().map(::http::uri::Authority::as_str);
        let named = match (header, target) {
            (Some(header), None) => header,
            (None, Some(target)) => target,
            (Some(header), Some(target)) if header.eq_ignore_ascii_case(target) => target,
            _ => return false,
        };
        self.usual.iter().any(|usual| usual == named)
            || named
                .parse()
                .is_ok_and(|named| self.hosts.iter().any(|host| host.allows(&named)))
    }

    fn check_origin(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<HeaderValue>, ::http::Response<Body>> {
        let Some(origin) = headers.get(ORIGIN) else {
            return Ok(None);
        };
        let allowed = self.any_origin
            || single(headers, &ORIGIN)
                .ok()
                .flatten()
                .and_then(|origin| origin.parse().ok())
                .is_some_and(|origin| self.allows_origin(&origin));
        if allowed {
            return Ok(Some(origin.clone()));
        }
        Err(refusal::plain(
            StatusCode::FORBIDDEN,
            format!(
                "pages of {} may not use this server; if they should, allow them with `allow_origin`",
                shown(Some(origin))
            ),
        ))
    }

    fn allows_origin(&self, origin: &Origin) -> bool {
        self.origins.contains(origin) || self.hosts.iter().any(|host| host.allows(origin.host()))
    }
}

/// The value of a header that may be there once.
fn single<'a>(
    headers: &'a HeaderMap,
    name: &::http::HeaderName,
) -> Result<Option<&'a str>, refusal::Ambiguous> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| refusal::Ambiguous),
        (Some(_), Some(_)) => Err(refusal::Ambiguous),
    }
}

/// A header value for people, not longer than they like to read.
fn shown(value: Option<&HeaderValue>) -> String {
    let text = String::from_utf8_lossy(value.map_or(b"", HeaderValue::as_bytes));
    format!("{:?}", text.chars().take(100).collect::<String>())
}
