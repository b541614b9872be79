//! HTTP+SSE of 2024-11-05: one event stream, and an endpoint for POSTs.

use std::time::Duration;

use tokio::{
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::{
    WireEvent,
    http::{RawHttpClient, RawHttpRequest, RawHttpResponse, StreamEvent},
};
use crate::engine::{outcome::NotPassed, transcript::Transcript};

/// The idle time after which the stream is no longer read.
const IDLE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// An open stream and its message endpoint.
pub(crate) struct HttpSseConnection {
    /// Sends requests.
    pub(crate) http_client: RawHttpClient,
    /// The path and query for POSTs.
    pub(crate) endpoint: String,
    /// The entries of the GET request and its response.
    pub(crate) opened: [usize; 2],
    /// The events up to `endpoint`.
    pub(crate) endpoint_events: Vec<usize>,
    inbox: Mutex<mpsc::UnboundedReceiver<WireEvent>>,
    reading: JoinHandle<()>,
}

impl HttpSseConnection {
    /// Opens the stream and waits for the `endpoint` event.
    pub(crate) async fn open(
        http_client: RawHttpClient,
        transcript: &Transcript,
        response_timeout: Duration,
    ) -> Result<Self, NotPassed> {
        let mut reply = stream_request(&http_client).send().await?;
        if reply.status != 200 || !reply.is_stream() {
            let observed = format!("the status {} instead of a stream", reply.status);
            return Err(NotPassed::violation(observed, reply.entries()));
        }
        let (endpoint_events, endpoint) =
            wait_for_endpoint(&mut reply, &http_client, transcript, response_timeout).await?;
        let opened = reply.entries();
        let (sender, inbox) = mpsc::unbounded_channel();
        let reading = tokio::spawn(async move {
            let end = read(reply, &sender).await;
            let _ = sender.send(WireEvent::End(end));
        });
        Ok(Self {
            http_client,
            endpoint,
            opened,
            endpoint_events,
            inbox: Mutex::new(inbox),
            reading,
        })
    }

    /// Starts a POST of a message.
    pub(crate) fn post(&self) -> RawHttpRequest {
        let raw_request = self.http_client.request_to("POST", &self.endpoint);
        raw_request.header("content-type", "application/json")
    }

    /// Returns the next event; `None` after the timeout.
    pub(crate) async fn next(&self, response_timeout: Duration) -> Option<WireEvent> {
        timeout(response_timeout, async {
            let mut inbox = self.inbox.lock().await;
            inbox.recv().await.unwrap_or(WireEvent::End(None))
        })
        .await
        .ok()
    }
}

impl Drop for HttpSseConnection {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Builds the GET request.
pub(crate) fn stream_request(http_client: &RawHttpClient) -> RawHttpRequest {
    http_client
        .request("GET")
        .header("accept", "text/event-stream")
}

/// Waits for the `endpoint` event; skips other events before it.
async fn wait_for_endpoint(
    reply: &mut RawHttpResponse,
    http_client: &RawHttpClient,
    transcript: &Transcript,
    response_timeout: Duration,
) -> Result<(Vec<usize>, String), NotPassed> {
    let mut events = Vec::new();
    let until = Instant::now() + response_timeout;
    loop {
        let number = match reply.event_until(until).await {
            StreamEvent::Message(number) => number,
            StreamEvent::Timeout => {
                let observed = "no `endpoint` event";
                return Err(NotPassed::violation(
                    observed,
                    reply.entries().into_iter().chain(events),
                ));
            }
            StreamEvent::End | StreamEvent::Interrupted(_) => {
                let observed = "the stream ends before the `endpoint` event";
                return Err(NotPassed::violation(
                    observed,
                    reply.entries().into_iter().chain(events),
                ));
            }
        };
        events.push(number);
        let entry = transcript.entry(number);
        if entry.event.is_some_and(|event| event.name == "endpoint") {
            let endpoint = entry.text.trim();
            let found = resolve(endpoint, http_client.path(), http_client.host());
            let other = || format!("the endpoint `{endpoint}` is on another server");
            let found = found.ok_or_else(|| NotPassed::violation(other(), [number]))?;
            return Ok((events, found));
        }
    }
}

/// Resolves the endpoint against the stream; `None` if it is on another server.
fn resolve(endpoint: &str, base: &str, host: &str) -> Option<String> {
    if let Some((_, rest)) = endpoint.split_once("://") {
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (theirs, path) = rest.split_at(at);
        return if theirs.eq_ignore_ascii_case(host) {
            resolve(path, "/", host)
        } else {
            None
        };
    }
    let base = base.split('?').next().unwrap_or_default();
    if endpoint.starts_with('/') {
        return Some(endpoint.to_owned());
    }
    if endpoint.starts_with('?') {
        return Some(format!("{base}{endpoint}"));
    }
    let folder = base.rsplit_once('/').map_or("", |(folder, _)| folder);
    Some(format!("{folder}/{endpoint}"))
}

async fn read(
    mut reply: RawHttpResponse,
    said: &mpsc::UnboundedSender<WireEvent>,
) -> Option<String> {
    loop {
        match reply.event(IDLE_TIMEOUT).await {
            StreamEvent::Message(number) => said.send(WireEvent::Message(number)).ok()?,
            StreamEvent::Timeout | StreamEvent::End => return None,
            StreamEvent::Interrupted(why) => return Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn places_are_found_from_where_the_stream_is() {
        let found = |endpoint| resolve(endpoint, "/api/sse?key=1", "example.com:8080");

        assert_eq!(found("/messages?id=1").as_deref(), Some("/messages?id=1"));
        assert_eq!(found("?id=1").as_deref(), Some("/api/sse?id=1"));
        assert_eq!(found("messages").as_deref(), Some("/api/messages"));
        assert_eq!(found("http://EXAMPLE.com:8080/m").as_deref(), Some("/m"));
        assert_eq!(found("http://elsewhere.example/m"), None);
    }
}
