//! Being told of changes, in the way of each era.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::outcome::Unmet;
use crate::overheard::{Message, messages};
use crate::session::{Answer, Pending, Session};
use crate::tape::Way;
use crate::visit::Visit;

/// How many resources are watched.
const WATCHED: usize = 20;
/// How long to wait at first before looking again whether something came.
const MOMENT: Duration = Duration::from_millis(10);
/// The request that stays open to hear of changes.
const LISTEN: &str = "subscriptions/listen";
/// The key under which a message says to which subscription it belongs.
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What was asked to be told about changes.
#[derive(Default)]
pub(crate) struct News {
    /// Requests that subscribe to a resource, where there is such a request.
    pub(crate) subscribed: Vec<(String, Result<Answer, Unmet>)>,
    /// A request that listens to all changes, where there is such a request.
    pub(crate) everything: Option<Listening>,
    /// A request that listens to nothing at all.
    pub(crate) nothing: Option<Listening>,
}

/// A request that stays open to hear of changes.
pub(crate) struct Listening {
    /// The length of the tape before it.
    from: usize,
    /// What it asked for.
    pub(crate) filter: Value,
    /// The id of the request, which is that of the subscription.
    pub(crate) id: Value,
    /// Keeps the request open.
    _pending: Pending,
}

impl News {
    /// Asks to be told of all that may change.
    pub(super) async fn ask(visit: &Visit, session: &Session) -> Result<Self, Unmet> {
        let resources = &visit.discovered().await?.resources;
        let uris = resources.iter().filter_map(|it| it["uri"].as_str());
        let uris: Vec<_> = uris.take(WATCHED).map(str::to_owned).collect();
        let mut news = Self::default();
        if session.speech.has_handshake() {
            session.attend().await;
            if session.capabilities()["resources"]["subscribe"] == true {
                for uri in uris {
                    let answer = session
                        .ask("resources/subscribe", json!({ "uri": uri }))
                        .await;
                    news.subscribed.push((uri, answer));
                }
            }
            return Ok(news);
        }
        if !tells_of_changes(session) {
            return Ok(news);
        }
        let everything = all_changes(&uris);
        news.everything =
            Some(Listening::begin(visit, session, "check-all".into(), everything).await?);
        news.nothing = Some(Listening::begin(visit, session, 987_654.into(), json!({})).await?);
        Ok(news)
    }
}

/// Says whether a server declares that it tells of anything.
fn tells_of_changes(session: &Session) -> bool {
    let capabilities = session.capabilities();
    let declared = [
        "/tools/listChanged",
        "/prompts/listChanged",
        "/resources/listChanged",
    ];
    let mut declared = declared.iter().chain(&["/resources/subscribe"]);
    declared.any(|pointer| capabilities.pointer(pointer) == Some(&Value::Bool(true)))
}

/// Returns a filter that lets everything through.
fn all_changes(uris: &[String]) -> Value {
    json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": uris,
    })
}

impl Listening {
    /// Begins to listen, and waits until something comes of it.
    pub(crate) async fn begin(
        visit: &Visit,
        session: &Session,
        id: Value,
        filter: Value,
    ) -> Result<Self, Unmet> {
        let params = json!({ "notifications": filter });
        let message = session.speech.request(id.clone(), LISTEN, params);
        let listening = Self {
            from: visit.tape.len(),
            _pending: session.send(message, false).await?,
            filter,
            id,
        };
        let (until, mut moment) = (Instant::now() + visit.options.patience, MOMENT);
        while listening.stream(visit).is_empty() && Instant::now() < until {
            session.listen(moment).await;
            moment *= 2;
        }
        Ok(listening)
    }

    /// Returns the entry of the request.
    pub(crate) fn sent(&self, visit: &Visit) -> Option<usize> {
        let mut sent = messages(&visit.tape, Way::Sent).filter(|message| message.at >= self.from);
        let sent = sent.find(|it| it.value["method"] == LISTEN && it.value["id"] == self.id);
        sent.map(|message| message.at)
    }

    /// Returns what came for it: on HTTP all that its stream brought, on a line what bears its id.
    pub(crate) fn stream(&self, visit: &Visit) -> Vec<Message> {
        let Some(sent) = self.sent(visit) else {
            return Vec::new();
        };
        let request = visit.tape.entry(sent);
        let alone = request.head.is_some();
        let its = |message: &Message| {
            let value = &message.value;
            let answers = value.get("method").is_none() && value["id"] == self.id;
            alone || answers || value["params"]["_meta"][SUBSCRIPTION] == self.id
        };
        messages(&visit.tape, Way::Received)
            .filter(|message| message.at > sent && message.entry.channel == request.channel)
            .filter(its)
            .collect()
    }
}
