//! The headers of a client that a server gets.

use http::{HeaderMap, HeaderName, HeaderValue};
use turnbuckle_server::relay::RelayedRequest;

/// Returns whether a header of clients may be sent to servers: it contains no credentials, and does not describe the
/// connection, the address of the client or the protocol.
pub fn is_forwardable_header(name: &HeaderName) -> bool {
    const REJECTED: [&str; 15] = [
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "cookie",
        "dpop",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "origin",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    const REJECTED_PREFIXES: [&str; 5] =
        ["content-", "last-event-", "mcp-", "proxy-", "x-forwarded-"];
    let name = name.as_str();
    let has_prefix = |prefix: &&str| name.starts_with(*prefix);
    !REJECTED.contains(&name) && !REJECTED_PREFIXES.iter().any(has_prefix)
}

/// Returns the headers of a request that its server gets.
pub(crate) fn forwarded_headers(
    names: &[HeaderName],
    request: &RelayedRequest,
) -> Vec<(HeaderName, HeaderValue)> {
    if names.is_empty() {
        return Vec::new();
    }
    let context = request.context();
    let Some(headers) = context.get::<HeaderMap>() else {
        return Vec::new();
    };
    let of_name = |name: &HeaderName| -> Vec<_> {
        let values = headers.get_all(name).iter();
        values.map(|value| (name.clone(), value.clone())).collect()
    };
    names.iter().flat_map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_headers_of_the_connection_are_not_forwarded() {
        for name in [
            "Authorization",
            "Cookie",
            "Host",
            "Forwarded",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "Mcp-Session-Id",
            "Mcp-Param-City",
            "Content-Length",
            "DPoP",
        ] {
            let name: HeaderName = name.parse().unwrap();
            assert!(!is_forwardable_header(&name), "{name}");
        }
        for name in ["X-Tenant", "X-Request-Id", "Accept-Language"] {
            let name: HeaderName = name.parse().unwrap();
            assert!(is_forwardable_header(&name), "{name}");
        }
    }
}
