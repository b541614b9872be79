//! Scenarios with a lost session or an interrupted stream.

use std::time::Duration;

use crate::{
    engine::transcript::HttpHead,
    mock_server::{
        script::{BodyKind, ScriptStep, ScriptedReply},
        server::{ENDPOINT, MockServer, NonRpcRequest, ReceivedRequest},
    },
};

/// The `retry` delay.
pub(crate) const RETRY_DELAY: Duration = Duration::from_millis(700);

/// The time to deliver events before the interruption.
const DELIVERY_TIME: Duration = Duration::from_millis(50);

/// The prefix of event ids.
const EVENT_ID_PREFIX: &str = "turnbuckle-event";

/// Rejects the first session with 404.
pub(super) fn lose_session(received: &ReceivedRequest<'_>) -> Option<ScriptedReply> {
    let session = received
        .head
        .and_then(|head: &HttpHead| head.header("mcp-session-id"));
    let opening = ["initialize", "server/discover"].contains(&received.method);
    if opening || session != Some("turnbuckle-session-1") {
        return None;
    }
    Some(ScriptedReply::error(received.message, -32001, "Session not found").with_status(404))
}

/// Interrupts the first stream before the response.
pub(super) fn reply(mock: &MockServer, received: &ReceivedRequest<'_>) -> Option<ScriptedReply> {
    let opening = ["initialize", "server/discover", "subscriptions/listen"];
    if opening.contains(&received.method) || !mock.is_first_time("interrupted") {
        return None;
    }
    if !mock.has_handshake() {
        return Some(ScriptedReply::steps([ScriptStep::Interrupt]).streamed());
    }
    mock.defer_response(mock.default_response(received));
    let steps = [
        ScriptStep::StartEventIds(EVENT_ID_PREFIX),
        ScriptStep::Retry(RETRY_DELAY),
        ScriptStep::Wait(DELIVERY_TIME),
        ScriptStep::Interrupt,
    ];
    Some(ScriptedReply::steps(steps).streamed())
}

/// Continues the interrupted stream.
pub(super) fn page(mock: &MockServer, page: &NonRpcRequest<'_>) -> Option<ScriptedReply> {
    let resumes = page.method == "GET"
        && page.path.starts_with(ENDPOINT)
        && page.head.header("last-event-id") == Some("turnbuckle-event-1");
    if !resumes {
        return None;
    }
    mock.note("resumed");
    let response = mock.deferred_response()?;
    Some(ScriptedReply {
        body_kind: BodyKind::Stream,
        ..ScriptedReply::steps([ScriptStep::Send(response)])
    })
}
