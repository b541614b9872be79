//! Being told of changes, in the way of each era.

use serde_json::{Value, json};

use crate::outcome::Unmet;
use crate::session::{Answer, Pending, Session};
use crate::visit::Visit;

/// How many resources are watched.
const WATCHED: usize = 20;

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
    /// What it asked for.
    pub(crate) filter: Value,
    /// The id of the request, which is that of the subscription.
    pub(crate) id: Value,
    /// The request.
    pub(crate) pending: Pending,
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
        let everything = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": uris,
        });
        news.everything = Some(Listening::begin(session, "check-all".into(), everything).await?);
        news.nothing = Some(Listening::begin(session, 987_654.into(), json!({})).await?);
        Ok(news)
    }
}

impl Listening {
    /// Begins to listen.
    pub(crate) async fn begin(session: &Session, id: Value, filter: Value) -> Result<Self, Unmet> {
        let params = json!({ "notifications": filter });
        let message = session
            .speech
            .request(id.clone(), "subscriptions/listen", params);
        Ok(Self {
            pending: session.send(message, false).await?,
            filter,
            id,
        })
    }
}
