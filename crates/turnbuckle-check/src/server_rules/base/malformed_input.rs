//! Sends deliberately malformed input.

use serde_json::Value;

use crate::{
    engine::{check_context::CheckContext, outcome::NotPassed},
    session::{ProbeResponse, Session},
};

/// The server's reaction to malformed input.
pub(super) struct ProbeOutcome {
    /// The entry of the input.
    pub(super) sent: usize,
    /// The status, on HTTP.
    pub(super) status: Option<u16>,
    /// The possible responses, with their entries. An array is one message.
    pub(super) replies: Vec<(usize, Value)>,
    /// The response to a later valid request.
    pub(super) after: Result<ProbeResponse, NotPassed>,
}

impl ProbeOutcome {
    /// Sends the text in a session, and then a valid request.
    ///
    /// `ids` are the ids of the expected responses; without ids, a response without an id is expected.
    pub(super) async fn send(
        ctx: &CheckContext,
        session: &Session,
        text: &str,
        ids: &[Value],
    ) -> Result<Self, NotPassed> {
        // Text that cannot be parsed is sent with the headers of a valid request.
        let message = serde_json::from_str(text).unwrap_or_else(|_| {
            let method = session.request_builder.noop_method();
            session.request_builder.request(0, method, Value::Null)
        });
        let headers = session
            .request_builder
            .headers(&message, session.id.as_deref());
        // Several responses may arrive separately: then wait for the end of the stream.
        let id = ids.first().filter(|_| ids.len() == 1).cloned();
        let mut pending = session.send_text(id, text, headers, true).await?;
        let mut outcome = Self {
            sent: pending.sent.unwrap_or_default(),
            status: None,
            replies: Vec::new(),
            after: Err(NotPassed::not_tested("no later request was sent")),
        };
        let mut received = Vec::new();
        if session.http_sse().is_ok() {
            let (status, body) = session.accepted_status(&mut pending).await;
            // The response to an accepted message arrives on the stream, if at all.
            outcome.status = status.filter(|&status| status >= 400);
            received.extend(body);
        }
        if session.http().is_ok() {
            match session.wait_response(pending).await {
                Ok(response) => {
                    outcome.sent = response.sent.unwrap_or_default();
                    outcome.status = response.status;
                    received.extend(response.before.iter().copied().chain(response.received));
                }
                // Another rule checks the end of streams.
                Err(NotPassed::Violation { entries, .. }) if ids.len() > 1 && entries.len() > 1 => {
                    received.extend(entries);
                }
                Err(failure) => return Err(failure),
            }
        }
        outcome.after = session
            .request(session.request_builder.noop_method(), Value::Null)
            .await;
        match &outcome.after {
            Ok(response) => received.extend(&response.before),
            Err(NotPassed::Violation { entries, .. }) => received.extend(entries),
            Err(_) => {}
        }
        outcome.collect(ctx, &received, ids);
        let expected = ids.len().max(1);
        if session.http().is_err() && outcome.after.is_ok() && outcome.replies.len() < expected {
            let late = session.listen(ctx.pace.quiet_period()).await;
            outcome.collect(ctx, &late, ids);
        }
        Ok(outcome)
    }

    fn collect(&mut self, ctx: &CheckContext, received: &[usize], ids: &[Value]) {
        for &number in received {
            let entry = ctx.transcript.entry(number);
            let Some(message) = entry.json().filter(|_| number != self.sent) else {
                continue;
            };
            let is_reply = match &message {
                Value::Array(_) => true,
                Value::Object(message) if message.contains_key("method") => false,
                Value::Object(message) => match message.get("id") {
                    None | Some(Value::Null) => true,
                    Some(id) => ids.contains(id),
                },
                _ => false,
            };
            if is_reply {
                self.replies.push((number, message));
            }
        }
    }

    /// Returns the first error, with its entry.
    pub(super) fn error(&self) -> Option<(usize, i64)> {
        let mut errors = self.replies.iter();
        errors.find_map(|(number, reply)| Some((*number, reply["error"]["code"].as_i64()?)))
    }

    /// Returns whether the server rejected the input with an error or a status.
    pub(super) fn is_rejected(&self) -> bool {
        self.error().is_some() || self.status.is_some_and(|status| status >= 400)
    }

    /// Returns the entries of the input and the replies.
    pub(super) fn entries(&self) -> Vec<usize> {
        let replies = self.replies.iter().map(|(number, _)| *number);
        let after = self.after.iter().flat_map(ProbeResponse::entries);
        let mut entries: Vec<_> = [self.sent].into_iter().chain(replies).collect();
        if self.replies.is_empty() {
            entries.extend(after);
        }
        entries
    }
}
