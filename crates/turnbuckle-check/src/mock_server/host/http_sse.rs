//! Serves HTTP+SSE: one event stream, and an endpoint for POSTs.

use std::sync::Arc;

use http::Response;
use serde_json::Value;

use super::{
    MockHost,
    connection::{BodyChunks, MockConnection},
    http::{ChunkedBody, ReceivedHttpRequest, respond, start_response},
};
use crate::{
    engine::transcript::{SseEventHead, TranscriptEntry},
    mock_server::{
        script::{ScriptStep, ScriptedReply},
        server::ENDPOINT,
    },
};

/// The endpoint for POSTs.
pub(crate) const MESSAGES: &str = "/messages?session=turnbuckle-1";

/// The open event stream.
#[derive(Clone)]
pub(super) struct HttpSseChannel {
    channel: usize,
    chunks: BodyChunks,
}

pub(super) async fn response(
    host: &Arc<MockHost>,
    request: &ReceivedHttpRequest,
) -> Response<ChunkedBody> {
    let at_endpoint = request.path == ENDPOINT;
    match request.method.as_str() {
        "GET" if at_endpoint => open(host, request).await,
        "POST" if request.path.starts_with("/messages") => {
            take(host, request);
            respond(host, request, ScriptedReply::status(202)).await
        }
        "POST" if at_endpoint => respond(host, request, ScriptedReply::status(405)).await,
        _ => respond(host, request, ScriptedReply::status(404)).await,
    }
}

async fn open(host: &Arc<MockHost>, request: &ReceivedHttpRequest) -> Response<ChunkedBody> {
    let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    let (chunks, response) = start_response(host, request, 200, headers, "");
    host.transcript.push(TranscriptEntry {
        event: Some(SseEventHead {
            id: String::new(),
            name: "endpoint".to_owned(),
        }),
        response_to: Some(request.number),
        ..TranscriptEntry::sent(request.channel, MESSAGES)
    });
    let endpoint = format!("event: endpoint\ndata: {MESSAGES}\n\n");
    let _ = chunks.send(Ok(endpoint.into())).await;
    host.state().events = Some(HttpSseChannel {
        channel: request.channel,
        chunks,
    });
    response
}

fn take(host: &Arc<MockHost>, request: &ReceivedHttpRequest) {
    let Ok(message) = serde_json::from_str::<Value>(&request.body) else {
        return;
    };
    let Some(reply) = host.receive(&message, Some(&request.head)) else {
        return;
    };
    let Some(events) = host.state().events.clone() else {
        return;
    };
    let connection = MockConnection::events(
        &host.transcript,
        events.channel,
        request.number,
        events.chunks,
    );
    let steps = reply
        .steps
        .into_iter()
        .filter(|step| {
            !matches!(
                step,
                ScriptStep::Interrupt | ScriptStep::KeepOpen | ScriptStep::StartEventIds(_)
            )
        })
        .collect();
    let running = host.clone();
    host.spawn(async move { running.run_steps(steps, connection).await });
}
