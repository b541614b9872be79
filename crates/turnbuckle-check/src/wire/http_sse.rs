//! HTTP+SSE of 2024-11-05: one event stream, and an endpoint for POSTs.

use std::time::Duration;

use tokio::{
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::{Instant, timeout},
};
use turnbuckle_text::url::{HostPort, HttpUrl};

use super::{
    WireEvent,
    http::{RawHttpClient, RawHttpRequest, RawHttpResponse, StreamEvent},
    pace::ServerPace,
    pool::ExchangeError,
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
        pace: &ServerPace,
    ) -> Result<Self, NotPassed> {
        // Not `send`: a session that waits alone may open another one.
        let opening = stream_request(&http_client).send_within(2 * pace.response_timeout());
        let mut response = opening.await?;
        if response.status != 200 || !response.is_stream() {
            let observed = format!("HTTP status {} instead of a stream", response.status);
            return Err(NotPassed::violation(observed, response.entries()));
        }
        let limit = pace.response_timeout();
        let (endpoint_events, endpoint) =
            wait_for_endpoint(&mut response, &http_client, transcript, limit).await?;
        let opened = response.entries();
        let (sender, inbox) = mpsc::unbounded_channel();
        let reading = tokio::spawn(async move {
            let end = read(response, &sender).await;
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

    /// Records the end of the server in the transcript, if it cannot be reached any more.
    pub(crate) async fn note_if_gone(&self, sent: usize, reason: &str) {
        let error = ExchangeError {
            reason: format!("the stream ended{reason}"),
            was_connected: true,
        };
        self.http_client.failure(sent, error).await;
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
    response: &mut RawHttpResponse,
    http_client: &RawHttpClient,
    transcript: &Transcript,
    response_timeout: Duration,
) -> Result<(Vec<usize>, String), NotPassed> {
    let mut events = Vec::new();
    let until = Instant::now() + response_timeout;
    loop {
        let number = match response.event_until(until).await {
            StreamEvent::Message(number) => number,
            StreamEvent::Timeout => {
                let observed = "no `endpoint` event";
                return Err(NotPassed::violation(
                    observed,
                    response.entries().into_iter().chain(events),
                ));
            }
            StreamEvent::End | StreamEvent::Interrupted(_) => {
                let observed = "the stream ends before the `endpoint` event";
                return Err(NotPassed::violation(
                    observed,
                    response.entries().into_iter().chain(events),
                ));
            }
        };
        events.push(number);
        let entry = transcript.entry(number);
        if entry.event.is_some_and(|event| event.name == "endpoint") {
            let endpoint = entry.text.trim();
            let resolved = resolve(endpoint, http_client.path(), http_client.host());
            let other = || format!("the endpoint `{endpoint}` is on another server");
            let resolved = resolved.ok_or_else(|| NotPassed::violation(other(), [number]))?;
            return Ok((events, resolved));
        }
    }
}

/// Resolves the endpoint against the stream; `None` if it is on another server.
fn resolve(endpoint: &str, base: &str, host: &str) -> Option<String> {
    if let Ok(url) = HttpUrl::parse(endpoint) {
        let is_same_server = host.parse::<HostPort>() == Ok(url.authority);
        let path = if url.path.is_empty() { "/" } else { url.path };
        return is_same_server.then(|| format!("{path}{}", url.query));
    }
    let base = base.split('?').next().unwrap_or_default();
    if endpoint.starts_with('/') {
        return Some(endpoint.to_owned());
    }
    if endpoint.starts_with('?') {
        return Some(format!("{base}{endpoint}"));
    }
    if endpoint.contains("://") {
        return None;
    }
    let folder = base.rsplit_once('/').map_or("", |(folder, _)| folder);
    Some(format!("{folder}/{endpoint}"))
}

async fn read(
    mut response: RawHttpResponse,
    sender: &mpsc::UnboundedSender<WireEvent>,
) -> Option<String> {
    loop {
        match response.event(IDLE_TIMEOUT).await {
            StreamEvent::Message(number) => sender.send(WireEvent::Message(number)).ok()?,
            StreamEvent::Timeout | StreamEvent::End => return None,
            StreamEvent::Interrupted(why) => return Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn endpoint_is_resolved_against_the_stream() {
        let resolved = |endpoint| resolve(endpoint, "/api/sse?key=1", "example.com:8080");

        assert_eq!(
            resolved("/messages?id=1").as_deref(),
            Some("/messages?id=1")
        );
        assert_eq!(resolved("?id=1").as_deref(), Some("/api/sse?id=1"));
        assert_eq!(resolved("messages").as_deref(), Some("/api/messages"));
        assert_eq!(resolved("http://EXAMPLE.com:8080/m").as_deref(), Some("/m"));
        assert_eq!(resolved("http://elsewhere.example/m"), None);
        assert_eq!(resolved("ftp://example.com:8080/m"), None);
        assert_eq!(
            resolved("http://example.com:8080?a").as_deref(),
            Some("/?a")
        );
        assert_eq!(
            resolved("/m?next=http://b").as_deref(),
            Some("/m?next=http://b")
        );
    }
}
