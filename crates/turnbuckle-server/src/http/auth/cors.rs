//! CORS response headers.

use ::http::{
    HeaderMap, HeaderValue, Response,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};

use crate::http::body::ResponseBody;

/// The request headers that are always allowed.
const ALLOWED_HEADERS: &str = "content-type, accept, authorization, dpop, last-event-id, mcp-session-id, \
                       mcp-protocol-version, mcp-method, mcp-name";

/// Allows the page of an allowed origin to read a response.
pub(crate) fn allow_origin(response: &mut Response<ResponseBody>, origin: HeaderValue) {
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

/// Adds the allowed methods and headers if the request is a CORS preflight.
pub(crate) fn preflight(
    response: &mut Response<ResponseBody>,
    request: &HeaderMap,
    methods: HeaderValue,
) {
    if !request.contains_key(ORIGIN) || !request.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return;
    }
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(request));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
}

/// Returns the always allowed headers, and those of the requested headers that are param headers.
fn allowed_headers(request: &HeaderMap) -> HeaderValue {
    let requested = request
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    let mut allowed = ALLOWED_HEADERS.to_owned();
    for header in requested.filter(|header| is_param_header(header)) {
        allowed.push_str(", ");
        allowed.push_str(header);
    }
    HeaderValue::try_from(allowed).unwrap_or(HeaderValue::from_static(ALLOWED_HEADERS))
}

fn is_param_header(header: &str) -> bool {
    const PREFIX: &str = "mcp-param-";
    header
        .get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}
