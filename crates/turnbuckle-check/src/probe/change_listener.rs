//! Subscriptions to change notifications, in both eras.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::NotPassed,
        transcript::Direction,
        transcript_query::{TranscriptMessage, messages},
    },
    session::{PendingResponse, ProbeResponse, Session},
};

/// The maximum number of resources to subscribe to.
const MAX_SUBSCRIBED_RESOURCES: usize = 20;
/// The first delay between two looks for a message.
const FIRST_POLL_DELAY: Duration = Duration::from_millis(10);
/// The request that stays open to receive changes.
const LISTEN: &str = "subscriptions/listen";
/// The `_meta` key of the subscription id.
pub(crate) const SUBSCRIPTION_ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The subscriptions that were made.
#[derive(Default)]
pub(crate) struct ChangeListener {
    /// Responses to `resources/subscribe`, in the legacy era.
    pub(crate) subscribed: Vec<(String, Result<ProbeResponse, NotPassed>)>,
    /// A `subscriptions/listen` request for all changes, in the modern era.
    pub(crate) everything: Option<ListenRequest>,
    /// A `subscriptions/listen` request with an empty filter.
    pub(crate) nothing: Option<ListenRequest>,
}

/// An open `subscriptions/listen` request.
pub(crate) struct ListenRequest {
    /// The length of the transcript before it.
    from: usize,
    /// The requested filter.
    pub(crate) filter: Value,
    /// The id of the request, which is also the id of the subscription.
    pub(crate) id: Value,
    /// Keeps the request open.
    _pending: PendingResponse,
}

impl ChangeListener {
    /// Subscribes to all changes.
    pub(super) async fn subscribe(
        ctx: &CheckContext,
        session: &Session,
    ) -> Result<Self, NotPassed> {
        let resources = &ctx.inventory().await?.resources;
        let uris = resources.iter().filter_map(|it| it["uri"].as_str());
        let uris: Vec<_> = uris
            .take(MAX_SUBSCRIBED_RESOURCES)
            .map(str::to_owned)
            .collect();
        let mut listener = Self::default();
        if session.request_builder.has_handshake() {
            session.open_get_stream().await;
            if session.capabilities()["resources"]["subscribe"] == true {
                for uri in uris {
                    let response = session
                        .request("resources/subscribe", json!({ "uri": uri }))
                        .await;
                    listener.subscribed.push((uri, response));
                }
            }
            return Ok(listener);
        }
        if !advertises_changes(session) {
            return Ok(listener);
        }
        let everything = all_changes(&uris);
        listener.everything =
            Some(ListenRequest::open(ctx, session, "check-all".into(), everything).await?);
        listener.nothing =
            Some(ListenRequest::open(ctx, session, 987_654.into(), json!({})).await?);
        Ok(listener)
    }
}

/// Returns whether the server advertises any change notification.
fn advertises_changes(session: &Session) -> bool {
    let capabilities = session.capabilities();
    let declared = [
        "/tools/listChanged",
        "/prompts/listChanged",
        "/resources/listChanged",
    ];
    let mut declared = declared.iter().chain(&["/resources/subscribe"]);
    declared.any(|pointer| capabilities.pointer(pointer) == Some(&Value::Bool(true)))
}

/// Returns a filter for all changes.
fn all_changes(uris: &[String]) -> Value {
    json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": uris,
    })
}

impl ListenRequest {
    /// Sends the request and waits for the first message.
    pub(crate) async fn open(
        ctx: &CheckContext,
        session: &Session,
        id: Value,
        filter: Value,
    ) -> Result<Self, NotPassed> {
        let params = json!({ "notifications": filter });
        let message = session.request_builder.request(id.clone(), LISTEN, params);
        let request = Self {
            from: ctx.transcript.len(),
            _pending: session.send_message(message, false).await?,
            filter,
            id,
        };
        let (until, mut delay) = (
            Instant::now() + ctx.pace.response_timeout(),
            FIRST_POLL_DELAY,
        );
        while request.stream(ctx).is_empty() && Instant::now() < until {
            session.listen(delay).await;
            delay *= 2;
        }
        Ok(request)
    }

    /// Returns the entry of the request.
    pub(crate) fn sent(&self, ctx: &CheckContext) -> Option<usize> {
        let mut sent =
            messages(&ctx.transcript, Direction::Sent).filter(|message| message.at >= self.from);
        let sent = sent.find(|it| it.value["method"] == LISTEN && it.value["id"] == self.id);
        sent.map(|message| message.at)
    }

    /// Returns the messages of the subscription: on HTTP all of its stream, on stdio those with its
    /// id.
    pub(crate) fn stream(&self, ctx: &CheckContext) -> Vec<TranscriptMessage> {
        let Some(sent) = self.sent(ctx) else {
            return Vec::new();
        };
        let request = ctx.transcript.entry(sent);
        let alone = request.head.is_some();
        let its = |message: &TranscriptMessage| {
            let value = &message.value;
            let responses = value.get("method").is_none() && value["id"] == self.id;
            alone || responses || value["params"]["_meta"][SUBSCRIPTION_ID_KEY] == self.id
        };
        messages(&ctx.transcript, Direction::Received)
            .filter(|message| message.at > sent && message.entry.channel == request.channel)
            .filter(its)
            .collect()
    }
}
