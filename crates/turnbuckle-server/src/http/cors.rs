//! What browsers want to hear before a page may use the server.

use ::http::{
    HeaderMap, HeaderValue, Response,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};

use super::body::Body;

/// The headers that a page may always send.
const ALLOWED: &str = "content-type, accept, authorization, dpop, last-event-id, mcp-session-id, \
                       mcp-protocol-version, mcp-method, mcp-name";

/// Lets the page of an allowed origin read an answer.
pub(super) fn allow(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, DPoP-Nonce",
        ),
    );
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// Says what a page of an allowed origin may send, if its browser asks.
pub(super) fn preflight(response: &mut Response<Body>, request: &HeaderMap, methods: HeaderValue) {
    if !request.contains_key(ORIGIN) || !request.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return;
    }
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(request));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
}

/// The usual headers, and of those asked for the ones that repeat parameters.
fn allowed_headers(request: &HeaderMap) -> HeaderValue {
    let asked = request
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    let mut allowed = ALLOWED.to_owned();
    for header in asked.filter(|header| is_parameter(header)) {
        allowed.push_str(", ");
        allowed.push_str(header);
    }
    HeaderValue::try_from(allowed).unwrap_or(HeaderValue::from_static(ALLOWED))
}

fn is_parameter(header: &str) -> bool {
    const PREFIX: &str = "mcp-param-";
    header
        .get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}
