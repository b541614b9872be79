//! Saying something odd on purpose, and seeing what comes of it.

use serde_json::Value;

use crate::{
    engine::{check_context::CheckContext, outcome::NotPassed},
    session::{ProbeResponse, Session},
};

/// What came of saying something odd.
pub(super) struct ProbeOutcome {
    /// The entry of what was said.
    pub(super) sent: usize,
    /// The status, on HTTP.
    pub(super) status: Option<u16>,
    /// What may answer it: the messages with their entries. An array is one message.
    pub(super) replies: Vec<(usize, Value)>,
    /// The answer to a harmless request that came after it.
    pub(super) after: Result<ProbeResponse, NotPassed>,
}

impl ProbeOutcome {
    /// Says it in a conversation, and asks something harmless afterwards.
    ///
    /// `ids` are those by which answers are known; without any, an answer that has none is waited for.
    pub(super) async fn send(
        ctx: &CheckContext,
        session: &Session,
        text: &str,
        ids: &[Value],
    ) -> Result<Self, NotPassed> {
        // What cannot be read comes with the headers of something harmless: so nothing is wrong with them.
        let message = serde_json::from_str(text).unwrap_or_else(|_| {
            let method = session.request_builder.noop_method();
            session.request_builder.request(0, method, Value::Null)
        });
        let headers = session
            .request_builder
            .headers(&message, session.id.as_deref());
        // Several answers may come one by one: then the end of all of them is waited for.
        let id = ids.first().filter(|_| ids.len() == 1).cloned();
        let mut pending = session.send_text(id, text, headers, true).await?;
        let mut outcome = Self {
            sent: pending.sent.unwrap_or_default(),
            status: None,
            replies: Vec::new(),
            after: Err(NotPassed::not_tested("nothing was asked afterwards")),
        };
        let mut heard = Vec::new();
        if session.http_sse().is_ok() {
            let (status, body) = session.accepted_status(&mut pending).await;
            // What was taken is answered on the stream, if at all.
            outcome.status = status.filter(|&status| status >= 400);
            heard.extend(body);
        }
        if session.http().is_ok() {
            match session.wait_response(pending).await {
                Ok(response) => {
                    outcome.sent = response.sent.unwrap_or_default();
                    outcome.status = response.status;
                    heard.extend(response.before.iter().copied().chain(response.received));
                }
                // Whether a stream ends is for another rule to judge.
                Err(NotPassed::Violation { entries, .. }) if ids.len() > 1 && entries.len() > 1 => {
                    heard.extend(entries);
                }
                Err(failure) => return Err(failure),
            }
        }
        outcome.after = session
            .request(session.request_builder.noop_method(), Value::Null)
            .await;
        match &outcome.after {
            Ok(response) => heard.extend(&response.before),
            Err(NotPassed::Violation { entries, .. }) => heard.extend(entries),
            Err(_) => {}
        }
        outcome.collect(ctx, &heard, ids);
        let expected = ids.len().max(1);
        if session.http().is_err() && outcome.after.is_ok() && outcome.replies.len() < expected {
            let late = session.listen(ctx.options.quiet_period).await;
            outcome.collect(ctx, &late, ids);
        }
        Ok(outcome)
    }

    fn collect(&mut self, ctx: &CheckContext, heard: &[usize], ids: &[Value]) {
        for &number in heard {
            let entry = ctx.transcript.entry(number);
            let Some(message) = entry.json().filter(|_| number != self.sent) else {
                continue;
            };
            let responses = match &message {
                Value::Array(_) => true,
                Value::Object(message) if message.contains_key("method") => false,
                Value::Object(message) => match message.get("id") {
                    None | Some(Value::Null) => true,
                    Some(id) => ids.contains(id),
                },
                _ => false,
            };
            if responses {
                self.replies.push((number, message));
            }
        }
    }

    /// Returns the first error that came back, with its entry.
    pub(super) fn error(&self) -> Option<(usize, i64)> {
        let mut errors = self.replies.iter();
        errors.find_map(|(number, reply)| Some((*number, reply["error"]["code"].as_i64()?)))
    }

    /// Says whether it was refused: by an error, or by a status.
    pub(super) fn is_refused(&self) -> bool {
        self.error().is_some() || self.status.is_some_and(|status| status >= 400)
    }

    /// Returns the entries that show it.
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
