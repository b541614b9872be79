//! Queries over the messages of a transcript.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::engine::transcript::{Direction, Transcript, TranscriptEntry};

/// The session id header.
const SESSION_HEADER: &str = "mcp-session-id";

/// A message in the transcript.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptMessage {
    /// The number of its entry.
    pub(crate) at: usize,
    /// Its entry.
    pub(crate) entry: TranscriptEntry,
    /// The parsed message.
    pub(crate) value: Value,
}

/// Returns all single messages in one direction, without batches and replayed events.
pub(crate) fn messages(
    transcript: &Transcript,
    direction: Direction,
) -> impl Iterator<Item = TranscriptMessage> {
    messages_within(transcript, direction, 0..transcript.len())
}

/// Returns the single messages in one direction within a range of entries.
pub(crate) fn messages_within(
    transcript: &Transcript,
    direction: Direction,
    part: Range<usize>,
) -> impl Iterator<Item = TranscriptMessage> {
    part.map(|at| (at, transcript.entry(at)))
        .filter(move |(_, entry)| entry.direction == direction && !entry.replayed)
        .filter_map(|(at, entry)| {
            let value = entry.json().filter(Value::is_object)?;
            Some(TranscriptMessage { at, entry, value })
        })
}

/// Returns all received messages with this method.
pub(crate) fn received(transcript: &Transcript, method: &str) -> Vec<TranscriptMessage> {
    messages(transcript, Direction::Received)
        .filter(|message| message.value["method"] == method)
        .collect()
}

/// Returns all received responses.
pub(crate) fn responses(transcript: &Transcript) -> impl Iterator<Item = TranscriptMessage> {
    messages(transcript, Direction::Received)
        .filter(|message| message.value.get("method").is_none())
}

/// Returns the response to the request in an entry, if there is one.
pub(crate) fn response_to(transcript: &Transcript, sent: usize) -> Option<TranscriptMessage> {
    responses(transcript).find(|message| message.entry.response_to == Some(sent))
}

/// Returns whether an entry was received in the session in which a request was sent.
///
/// Other sessions may receive unrelated server messages on other connections.
pub(crate) fn is_same_session(transcript: &Transcript, sent: usize, at: usize) -> bool {
    let (sent, received) = (transcript.entry(sent), transcript.entry(at));
    let Some(head) = sent.head else {
        return received.channel == sent.channel;
    };
    let request_head = received
        .response_to
        .and_then(|request| transcript.entry(request).head);
    request_head.is_none_or(|request| request.header(SESSION_HEADER) == head.header(SESSION_HEADER))
}

/// A request of the server to its client.
#[derive(Clone, Debug)]
pub(crate) struct ObservedClientRequest {
    /// The number of its entry.
    pub(crate) at: usize,
    /// Sent as a request, not as part of an `input_required` result.
    pub(crate) by_request: bool,
    /// `elicitation/create`, `sampling/createMessage`, or `roots/list`.
    pub(crate) method: String,
    /// The parameters.
    pub(crate) params: Value,
}

/// Returns the requests of the server to its client, sent as requests or in results.
pub(crate) fn client_requests(transcript: &Transcript) -> Vec<ObservedClientRequest> {
    client_requests_within(transcript, 0..transcript.len())
}

/// Returns the requests of the server to its client within a range of entries.
pub(crate) fn client_requests_within(
    transcript: &Transcript,
    part: Range<usize>,
) -> Vec<ObservedClientRequest> {
    messages_within(transcript, Direction::Received, part)
        .flat_map(|message| {
            let by_request =
                message.value.get("id").is_some() && message.value.get("method").is_some();
            let requests: Vec<Value> = if by_request {
                vec![message.value]
            } else {
                let requests = message.value["result"]["inputRequests"].as_object();
                requests
                    .into_iter()
                    .flat_map(Map::values)
                    .cloned()
                    .collect()
            };
            let client_request = move |request: Value| {
                Some(ObservedClientRequest {
                    at: message.at,
                    by_request,
                    method: request["method"].as_str()?.to_owned(),
                    params: request["params"].clone(),
                })
            };
            requests.into_iter().filter_map(client_request)
        })
        .filter(|client_request| client_request.method != "ping")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::transcript::HttpHead;

    fn request(transcript: &Transcript, channel: usize, line: &str, session: &str) -> usize {
        let head = HttpHead {
            start_line: line.to_owned(),
            headers: vec![(SESSION_HEADER.to_owned(), session.to_owned())],
        };
        transcript.push(TranscriptEntry {
            head: Some(head),
            ..TranscriptEntry::sent(channel, "")
        })
    }

    fn event(transcript: &Transcript, channel: usize, responses: usize) -> usize {
        transcript.push(TranscriptEntry {
            response_to: Some(responses),
            ..TranscriptEntry::received(
                channel,
                r#"{"jsonrpc":"2.0","method":"roots/list","id":1}"#,
            )
        })
    }

    #[test]
    fn messages_of_another_session_are_excluded() {
        let transcript = Transcript::default();
        let call = request(&transcript, 1, "POST /mcp", "mine");
        let mine = request(&transcript, 2, "GET /mcp", "mine");
        let other = request(&transcript, 3, "GET /mcp", "another");

        assert!(is_same_session(
            &transcript,
            call,
            event(&transcript, 1, call)
        ));
        assert!(is_same_session(
            &transcript,
            call,
            event(&transcript, 2, mine)
        ));
        assert!(!is_same_session(
            &transcript,
            call,
            event(&transcript, 3, other)
        ));
    }

    #[test]
    fn messages_of_another_connection_are_excluded() {
        let transcript = Transcript::default();
        let call = transcript.push(TranscriptEntry::sent(1, "{}"));
        let mine = transcript.push(TranscriptEntry::received(1, "{}"));
        let other = transcript.push(TranscriptEntry::received(2, "{}"));

        assert!(is_same_session(&transcript, call, mine));
        assert!(!is_same_session(&transcript, call, other));
    }
}
