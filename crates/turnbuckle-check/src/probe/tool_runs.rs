//! Calls of all callable tools, made once for all rules.
//!
//! Every call requests progress, log messages of every level and change notifications. A rule that needs a call
//! without them repeats the one tool that sent something.

use std::{
    ops::Range,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

pub(crate) use super::change_listener::{ChangeListener, ListenRequest, SUBSCRIPTION_ID_KEY};
use super::safe_calls::SafeCall;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::NotPassed,
        transcript::Direction,
        transcript_query::{
            ObservedClientRequest, client_requests_within, is_same_session, messages_within,
        },
    },
    session::{PendingResponse, ProbeResponse, Session},
};

/// The time to wait after a call for messages on other streams.
const SETTLE_TIME: Duration = Duration::from_millis(20);

/// The maximum number of tools to call.
const MAX_TOOLS: usize = 25;
/// The number of missing responses after which no more tools are called.
const MAX_MISSING_RESPONSES: usize = 2;

/// The `_meta` key of the log level, in the modern era.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The calls that were made.
pub(crate) struct ToolRuns {
    /// The session in which they were made.
    pub(crate) session: Session,
    /// The subscriptions to changes.
    pub(crate) changes: ChangeListener,
    /// The calls, in order.
    pub(crate) runs: Vec<ToolRun>,
}

impl ToolRuns {
    /// Calls every callable tool, one after the other.
    pub(crate) async fn run(ctx: &CheckContext) -> Result<Self, NotPassed> {
        let calls = ctx.safe_calls().await?;
        let session = ctx.new_session().await?;
        let logs = session.capabilities().get("logging").is_some();
        if logs && session.request_builder.has_handshake() {
            // A separate rule reports an error here.
            let _ = set_level(&session, "debug").await;
        }
        let changes = ChangeListener::subscribe(ctx, &session).await?;
        let mut runs = Vec::new();
        let mut missing_responses = 0;
        for call in calls.into_iter().take(MAX_TOOLS) {
            if missing_responses == MAX_MISSING_RESPONSES {
                break;
            }
            let meta = json!({ "progressToken": next_progress_token(), LOG_LEVEL: "debug" });
            let mut run = ToolRun::run(ctx, &session, call, supported_meta(&session, meta)).await;
            session.listen(SETTLE_TIME).await;
            run.span.end = ctx.transcript.len();
            missing_responses += usize::from(run.failure.is_some());
            runs.push(run);
        }
        Ok(Self {
            session,
            changes,
            runs,
        })
    }

    /// Returns the calls during which the server sent notifications with this method.
    pub(crate) fn that_sent(&self, ctx: &CheckContext, method: &str) -> Vec<&ToolRun> {
        let sent = |run: &&ToolRun| !run.notifications(ctx, method).is_empty();
        self.runs.iter().filter(sent).collect()
    }

    /// Returns the calls during which the server sent requests to its client.
    pub(crate) fn that_sent_client_requests(&self, ctx: &CheckContext) -> Vec<&ToolRun> {
        let has_client_requests = |run: &&ToolRun| !run.client_requests(ctx).is_empty();
        self.runs.iter().filter(has_client_requests).collect()
    }

    /// Returns the duration of a call; the maximum if it got no response.
    pub(crate) fn duration(&self, call: &SafeCall) -> Duration {
        let same = |run: &&ToolRun| {
            let tried = &run.call;
            tried.name == call.name && tried.arguments == call.arguments
        };
        let tried = self.runs.iter().find(same);
        let with_response = tried.filter(|run| run.failure.is_none());
        with_response.map_or(Duration::MAX, |run| run.duration)
    }

    /// Reports that none of the called tools did something.
    pub(crate) fn none(&self, activity: &str) -> NotPassed {
        NotPassed::not_tested(format!(
            "none of the {} called tools {activity}",
            self.runs.len()
        ))
    }
}

/// Sends `logging/setLevel`.
pub(crate) async fn set_level(session: &Session, level: &str) -> Result<ProbeResponse, NotPassed> {
    session
        .request("logging/setLevel", json!({ "level": level }))
        .await
}

/// Returns a unique progress token.
pub(crate) fn next_progress_token() -> Value {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    format!("check-{}", NEXT.fetch_add(1, Ordering::Relaxed)).into()
}

/// Removes `_meta` keys that the revision does not define.
fn supported_meta(session: &Session, mut meta: Value) -> Value {
    if let (true, Some(meta)) = (
        session.request_builder.has_handshake(),
        meta.as_object_mut(),
    ) {
        meta.remove(LOG_LEVEL);
    }
    meta
}

/// The maximum number of `input_required` round trips per call.
const MAX_ROUND_TRIPS: usize = 5;

/// A tool call and its responses.
#[derive(Debug)]
pub(crate) struct ToolRun {
    /// The tool and its arguments.
    pub(crate) call: SafeCall,
    /// The parameters without input responses.
    pub(crate) params: Value,
    /// The entry of the first request.
    pub(crate) sent: Option<usize>,
    /// The responses: several if the server requested input.
    pub(crate) responses: Vec<ProbeResponse>,
    /// The reason why the last response is missing.
    pub(crate) failure: Option<NotPassed>,
    /// The duration.
    pub(crate) duration: Duration,
    /// The transcript entries during the call.
    pub(crate) span: Range<usize>,
}

impl ToolRun {
    /// Calls a tool and answers its input requests; `meta` is sent with every round trip.
    pub(crate) async fn run(
        ctx: &CheckContext,
        session: &Session,
        call: &SafeCall,
        meta: Value,
    ) -> Self {
        let mut params = call.params();
        if meta.as_object().is_some_and(|meta| !meta.is_empty()) {
            params["_meta"] = meta;
        }
        Self::run_with_params(ctx, session, call, params).await
    }

    /// Calls a tool with these parameters.
    pub(crate) async fn run_with_params(
        ctx: &CheckContext,
        session: &Session,
        call: &SafeCall,
        params: Value,
    ) -> Self {
        let from = ctx.transcript.len();
        let started = Instant::now();
        let mut run = Self {
            call: call.clone(),
            params,
            sent: None,
            responses: Vec::new(),
            failure: None,
            duration: Duration::ZERO,
            span: from..from,
        };
        let mut params = run.params.clone();
        for _ in 0..MAX_ROUND_TRIPS {
            let response = match start_call(session, call, params.clone()).await {
                Ok(pending) => {
                    run.sent = run.sent.or(pending.sent);
                    response(session, pending).await
                }
                Err(failure) => Err(failure),
            };
            match response {
                Ok(response) => run.responses.push(response),
                Err(failure) => {
                    run.failure = Some(failure.into_not_tested());
                    break;
                }
            }
            match run.responses.last().and_then(|last| run.retry(last)) {
                Some(retry) => params = retry,
                None => break,
            }
        }
        run.duration = started.elapsed();
        run.span = from..ctx.transcript.len();
        run
    }

    /// Returns the parameters of the first retry, if the first response requests input.
    pub(crate) fn first_retry(&self) -> Option<Value> {
        self.retry(self.responses.first()?)
    }

    /// Returns the parameters of the retry after a response that requests input.
    pub(crate) fn retry(&self, response: &ProbeResponse) -> Option<Value> {
        let result = response.value.get("result")?;
        if result["resultType"] != "input_required" {
            return None;
        }
        let mut params = self.params.clone();
        // Every round trip is a separate request and needs its own progress token.
        if let Some(token) = params.pointer_mut("/_meta/progressToken") {
            *token = next_progress_token();
        }
        if let Some(requests) = result["inputRequests"].as_object() {
            params["inputResponses"] = input_responses(requests);
        }
        if let Some(state) = result.get("requestState") {
            params["requestState"] = state.clone();
        }
        Some(params)
    }

    /// Returns the requests to the client during the call.
    pub(crate) fn client_requests(&self, ctx: &CheckContext) -> Vec<ObservedClientRequest> {
        let mut client_requests = client_requests_within(&ctx.transcript, self.span.clone());
        client_requests.retain(|client_request| self.is_in_same_session(ctx, client_request.at));
        client_requests
    }

    /// Returns whether an entry belongs to the session of the call.
    fn is_in_same_session(&self, ctx: &CheckContext, at: usize) -> bool {
        self.sent
            .is_some_and(|sent| is_same_session(&ctx.transcript, sent, at))
    }

    /// Returns the notifications with this method during the call.
    pub(crate) fn notifications(&self, ctx: &CheckContext, method: &str) -> Vec<(usize, Value)> {
        messages_within(&ctx.transcript, Direction::Received, self.span.clone())
            .filter(|message| message.value["method"] == method)
            .filter(|message| self.is_in_same_session(ctx, message.at))
            .map(|message| (message.at, message.value))
            .collect()
    }

    /// Returns the last response. A missing one is reported by another rule.
    pub(crate) fn response(&self) -> Result<&ProbeResponse, NotPassed> {
        match (&self.failure, self.responses.last()) {
            (None, Some(response)) => Ok(response),
            (failure, _) => Err(failure
                .clone()
                .unwrap_or_else(|| NotPassed::not_tested("the call was not made"))),
        }
    }

    /// Returns the transcript entries of the responses.
    pub(crate) fn entries(&self) -> impl Iterator<Item = usize> {
        self.responses.iter().flat_map(ProbeResponse::entries)
    }
}

/// Makes the call with these parameters and waits for the response. A missing one is reported by another rule.
pub(crate) async fn call_tool(
    session: &Session,
    call: &SafeCall,
    params: Value,
) -> Result<ProbeResponse, NotPassed> {
    let pending = start_call(session, call, params).await?;
    response(session, pending).await
}

async fn start_call(
    session: &Session,
    call: &SafeCall,
    params: Value,
) -> Result<PendingResponse, NotPassed> {
    session
        .send_request_with_headers("tools/call", params, call.headers())
        .await
}

async fn response(session: &Session, pending: PendingResponse) -> Result<ProbeResponse, NotPassed> {
    let id = pending.id.clone();
    let response = session.wait_response(pending).await;
    if response.is_err() {
        cancel(session, id).await;
    }
    response.map_err(NotPassed::into_not_tested)
}

/// Cancels a request without a response, so that the server can process the next one.
async fn cancel(session: &Session, id: Option<Value>) {
    let closes = session.http().is_ok() && !session.request_builder.has_handshake();
    if let (Some(id), false) = (id, closes) {
        let params = json!({ "requestId": id, "reason": "Timeout." });
        // Best effort.
        let _ = session.notify("notifications/cancelled", params).await;
    }
}

/// Answers input requests without side effects: forms are declined.
pub(crate) fn input_responses(requests: &Map<String, Value>) -> Value {
    let response = |request: &Value| match request["method"].as_str() {
        Some("roots/list") => json!({ "roots": [] }),
        Some("sampling/createMessage") => json!({
            "role": "assistant", "model": "none", "stopReason": "endTurn",
            "content": { "type": "text", "text": "This is a check: no model was called." },
        }),
        _ => json!({ "action": "decline" }),
    };
    let responses = requests
        .iter()
        .map(|(key, request)| (key.clone(), response(request)));
    Value::Object(responses.collect())
}

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::revision::Revision;

    use super::*;
    use crate::{CheckOptions, ServerTarget, engine::transcript::TranscriptEntry};

    #[test]
    fn client_requests_of_other_calls_are_excluded() {
        let target = ServerTarget::streams("silent", || async {
            Ok(tokio::io::split(tokio::io::duplex(1).0))
        });
        let ctx = CheckContext::new(&target, &CheckOptions::default(), Revision::V2025_03_26);
        let sent = ctx.transcript.push(TranscriptEntry::sent(1, "{}"));
        let client_request = r#"{"jsonrpc":"2.0","method":"roots/list","id":0}"#;
        for channel in [1, 2] {
            ctx.transcript
                .push(TranscriptEntry::received(channel, client_request));
        }
        let run = ToolRun {
            call: SafeCall {
                tool: json!({}),
                name: "slow".to_owned(),
                arguments: json!({}),
                only_as_task: false,
                allows_other_arguments: true,
            },
            params: json!({}),
            sent: Some(sent),
            responses: Vec::new(),
            failure: Some(NotPassed::not_tested("no response")),
            duration: Duration::ZERO,
            span: 0..ctx.transcript.len(),
        };

        let received: Vec<_> = run.client_requests(&ctx).iter().map(|one| one.at).collect();

        assert_eq!(received, [1]);
    }
}
