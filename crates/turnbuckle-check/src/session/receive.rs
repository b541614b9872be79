//! Waits for the response to a request, and decides what a missing one means.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::Value;

use super::{OPENING_FACTOR, PendingResponse, ProbeResponse, Session, SessionTransport};
use crate::{
    engine::{outcome::NotPassed, transcript::Transcript},
    lock,
    wire::WireEvent,
};

impl Session {
    /// Waits for a response; responds to requests of the server until then.
    ///
    /// On HTTP, a response without a message also counts: it only has a status.
    ///
    /// A late response is waited for again, while no other session uses the server. If it is still missing, other
    /// requests show whether the server withholds it, which is a violation, or is only slow, which is not tested.
    pub(crate) async fn wait_response(
        &self,
        mut pending: PendingResponse,
    ) -> Result<ProbeResponse, NotPassed> {
        let mut before = Vec::new();
        let first = match self.ndjson() {
            Ok(line) if line.is_starting() => OPENING_FACTOR * self.pace.process_timeout(),
            _ => self.pace.response_timeout(),
        };
        if let Some(response) = self.next_response(&mut pending, &mut before, first).await? {
            return Ok(response);
        }
        let _paused = self.pace.pause_other_sessions().await;
        self.is_alone.store(true, Ordering::Relaxed);
        let again = self.wait_alone(pending, before, first).await;
        self.is_alone.store(false, Ordering::Relaxed);
        again
    }

    /// Waits again for a response that was missing for the time `first`.
    async fn wait_alone(
        &self,
        mut pending: PendingResponse,
        mut before: Vec<usize>,
        first: Duration,
    ) -> Result<ProbeResponse, NotPassed> {
        let limit = self.pace.response_timeout();
        if let Some(response) = self.next_response(&mut pending, &mut before, limit).await? {
            return Ok(response);
        }
        self.response_missing.store(true, Ordering::Relaxed);
        let observed = format!("no response within {:?}", first + limit);
        if self.is_responsive().await {
            // The response may have arrived in the meantime.
            if let Some(response) = self
                .next_response(&mut pending, &mut before, Duration::ZERO)
                .await?
            {
                return Ok(response);
            }
            let entries = pending.sent.into_iter().chain(before);
            Err(NotPassed::violation(observed, entries))
        } else {
            Err(NotPassed::not_tested(format!(
                "{observed}, nor to other requests: the server is too slow or blocked"
            )))
        }
    }

    /// Returns whether the server responds at all: to a request in this session, or to the start of another one.
    async fn is_responsive(&self) -> bool {
        let limit = self.pace.response_timeout();
        if self.opening.is_some()
            && let Ok(pending) = self
                .send_request(self.request_builder.noop_method(), Value::Null)
                .await
            && self.wait_response_within(pending, limit).await.is_ok()
        {
            return true;
        }
        // A separate transcript: no rule is about this session.
        let (transcript, request_builder) = (Transcript::default(), self.request_builder.clone());
        let opened = Self::connect(&self.target, &transcript, request_builder, &self.pace).await;
        let Ok(mut other) = opened else {
            return false;
        };
        other.is_alone.store(true, Ordering::Relaxed);
        Box::pin(other.initialize_session()).await.is_ok()
    }

    /// Waits for a response with this time limit; a missing one is a violation.
    pub(crate) async fn wait_response_within(
        &self,
        mut pending: PendingResponse,
        limit: Duration,
    ) -> Result<ProbeResponse, NotPassed> {
        let mut before = Vec::new();
        if let Some(response) = self.next_response(&mut pending, &mut before, limit).await? {
            return Ok(response);
        }
        let is_short = limit < self.pace.response_timeout();
        self.response_missing.fetch_or(!is_short, Ordering::Relaxed);
        let observed = format!("no response within {limit:?}");
        let entries = pending.sent.into_iter().chain(before);
        Err(NotPassed::violation(observed, entries))
    }

    /// Returns the response; `None` after the time limit. Other messages are added to `before`.
    async fn next_response(
        &self,
        pending: &mut PendingResponse,
        before: &mut Vec<usize>,
        limit: Duration,
    ) -> Result<Option<ProbeResponse>, NotPassed> {
        let started = tokio::time::Instant::now();
        let until = started + limit;
        if let Some(number) = self.take_deferred(pending) {
            let before = std::mem::take(before);
            let response = ProbeResponse::new(&self.transcript, pending, Some(number), before);
            return Ok(Some(response));
        }
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let (own, event) = match &mut pending.response_task {
                // A peer that keeps sending other messages also times out.
                _ if left.is_zero() => (false, None),
                Some(response_task) => tokio::select! {
                    biased;
                    event = response_task.next(left) => (true, event),
                    event = self.next_unsolicited(left) => (false, event),
                },
                None => (false, self.next_unsolicited(left).await),
            };
            if self.transcript.is_full() {
                return Err(NotPassed::not_tested(Transcript::overflow_message()));
            }
            match event {
                None => return Ok(None),
                Some(WireEvent::Head(status, number)) => pending.head(status, number),
                Some(WireEvent::Message(number)) if self.is_other_stream(own, pending) => {
                    if !own {
                        self.handle_unsolicited_entry(number).await;
                    }
                }
                Some(WireEvent::Message(number)) => {
                    if self.receive(pending, before, number, own).await {
                        self.record_pace(pending, started);
                        let before = std::mem::take(before);
                        let response =
                            ProbeResponse::new(&self.transcript, pending, Some(number), before);
                        pending.finish();
                        return Ok(Some(response));
                    }
                }
                // On HTTP+SSE the response arrives on the stream.
                Some(WireEvent::End(None)) if own && self.expects_stream_response(pending) => {
                    pending.response_task = None;
                }
                Some(WireEvent::End(None)) if own && pending.status.is_some() => {
                    let before = std::mem::take(before);
                    let response = ProbeResponse::new(&self.transcript, pending, None, before);
                    return Ok(Some(response));
                }
                Some(WireEvent::End(why)) => {
                    return Err(self.ended(pending.sent, std::mem::take(before), why).await);
                }
            }
        }
    }

    /// Handles a message while waiting; returns whether it is the response.
    async fn receive(
        &self,
        pending: &PendingResponse,
        before: &mut Vec<usize>,
        number: usize,
        own: bool,
    ) -> bool {
        let message = self.transcript.entry(number).json().unwrap_or_default();
        if pending.is_response(&message, own) {
            return true;
        }
        let responds = message.get("method").is_none() && !message.is_array();
        if responds && !own && message.get("id").is_some() {
            self.defer(number);
        } else {
            self.handle_unsolicited(number, &message).await;
        }
        before.push(number);
        false
    }

    /// Measures the pace by requests that need no work.
    fn record_pace(&self, pending: &PendingResponse, started: tokio::time::Instant) {
        let request = pending
            .sent
            .and_then(|sent| self.transcript.entry(sent).json());
        let method = request.and_then(|request| request["method"].as_str().map(str::to_owned));
        let is_light = |method: &str| {
            matches!(method, "initialize" | "ping" | "server/discover") || method.ends_with("/list")
        };
        let starts = self.opening.is_none() && self.ndjson().is_ok();
        if !starts && method.as_deref().is_some_and(is_light) {
            self.pace.record_answer(started.elapsed());
        }
    }

    /// Waits until a POST is accepted or rejected; returns the status and the entry of the body.
    ///
    /// On HTTP+SSE this is not the JSON-RPC response. Without a POST it returns at once.
    pub(crate) async fn accepted_status(
        &self,
        pending: &mut PendingResponse,
    ) -> (Option<u16>, Option<usize>) {
        let mut body = None;
        let until = tokio::time::Instant::now() + self.pace.response_timeout();
        while let Some(response_task) = &mut pending.response_task {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let event = if left.is_zero() {
                None
            } else {
                response_task.next(left).await
            };
            match event {
                Some(WireEvent::Head(status, number)) => pending.head(status, number),
                Some(WireEvent::Message(number)) => body = Some(number),
                Some(WireEvent::End(_)) | None => pending.response_task = None,
            }
        }
        (pending.status, body)
    }

    /// Returns whether messages from this stream cannot be the response: the GET stream, or on
    /// HTTP+SSE the body of an accepted POST.
    fn is_other_stream(&self, own: bool, pending: &PendingResponse) -> bool {
        match self.transport {
            SessionTransport::Ndjson(_) => false,
            SessionTransport::Http(_) => !own,
            SessionTransport::HttpSse(_) => own && pending.is_accepted(),
        }
    }

    fn expects_stream_response(&self, pending: &PendingResponse) -> bool {
        let streams = matches!(self.transport, SessionTransport::HttpSse(_));
        streams && pending.is_accepted() && pending.id.is_some()
    }

    fn defer(&self, number: usize) {
        lock(&self.deferred).push(number);
    }

    fn take_deferred(&self, pending: &PendingResponse) -> Option<usize> {
        let mut deferred = lock(&self.deferred);
        let is_response = |&number: &usize| {
            let message = self.transcript.entry(number).json();
            message.is_some_and(|message| pending.is_response(&message, false))
        };
        let at = deferred.iter().position(is_response)?;
        Some(deferred.remove(at))
    }
}
