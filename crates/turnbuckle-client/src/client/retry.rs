//! The conditions under which a request is sent again.

use turnbuckle_protocol::method::{self, Method};

use crate::{
    client::Client,
    error::TransportError,
    lifecycle::RevisionRules,
    transport::{OutgoingRequest, http::HttpError},
};

/// Returns whether the server has certainly not processed the request, and requires a new session.
pub(crate) fn needs_new_session(error: &TransportError, rules: &RevisionRules) -> bool {
    match error {
        TransportError::SessionEnded => true,
        // The server used to respond as 2026-07-28 defines, and now does not send JSON-RPC at all.
        TransportError::ErrorResponse(error_response) => {
            !rules.session && matches!(error_response.status.as_u16(), 400 | 404 | 405)
        }
        _ => false,
    }
}

/// Returns whether the server may have received the request, but its response is lost.
pub(crate) fn is_response_lost(
    client: &Client,
    error: &TransportError,
    rules: &RevisionRules,
) -> bool {
    rules.reissue_lost_requests && client.inner.transport.is_http() && is_lost_response(error)
}

/// Returns whether a request can be received twice without a further effect.
///
/// The annotations of a tool may be wrong. But the call is repeated to the same server, which could repeat it on its
/// own.
pub(super) fn is_repeatable(client: &Client, request: &OutgoingRequest<'_>) -> bool {
    if request.method.name == method::TOOLS_CALL.name {
        return request
            .name
            .is_some_and(|tool| client.inner.tools.is_repeatable(tool));
    }
    is_read_only(request.method)
}

/// The methods that only read. The methods of unknown extensions may have side effects, whatever their name.
const READ_ONLY_METHODS: [&str; 13] = [
    method::SERVER_DISCOVER.name,
    method::TOOLS_LIST.name,
    method::RESOURCES_LIST.name,
    method::RESOURCES_TEMPLATES_LIST.name,
    method::RESOURCES_READ.name,
    method::PROMPTS_LIST.name,
    method::PROMPTS_GET.name,
    method::COMPLETION_COMPLETE.name,
    method::TASKS_GET.name,
    method::TASKS_LIST.name,
    "resources/directory/read",
    "skills/get",
    "skills/list",
];

/// Returns whether a method is free of side effects.
fn is_read_only(method: &Method) -> bool {
    READ_ONLY_METHODS.contains(&method.name)
}

/// Returns whether a request was sent over HTTP, and the connection broke before its response.
pub(crate) fn is_lost_response(error: &TransportError) -> bool {
    match error {
        TransportError::Closed => true,
        TransportError::Http(error) => matches!(**error, HttpError::ConnectionBroken(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_methods_are_read_only() {
        for read in [
            &method::TOOLS_LIST,
            &method::TASKS_LIST,
            &method::PROMPTS_GET,
        ] {
            assert!(is_read_only(read), "{}", read.name);
        }
        assert!(is_read_only(&Method::for_extension("skills/list")));
        for unknown in ["queue/list", "com.example/list", "tasks/cancel"] {
            assert!(!is_read_only(&Method::for_extension(unknown)), "{unknown}");
        }
    }
}
