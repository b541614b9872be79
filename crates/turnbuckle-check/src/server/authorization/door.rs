//! Coming to a server without a token, and reading what it says then.

use serde_json::Value;
use turnbuckle_client::auth::Challenge;

use crate::outcome::{Outcome, Seen, Unmet};
use crate::speech::Speech;
use crate::visit::Visit;
use crate::wire::http::{Draft, Reply};

/// What a server said to somebody without a token that is good.
pub(super) struct Door {
    pub(super) status: u16,
    pub(super) entries: [usize; 2],
    challenges: Vec<String>,
}

/// The metadata of a server.
pub(super) struct Found {
    pub(super) value: Value,
    pub(super) entries: [usize; 2],
}

impl Door {
    /// Comes without a token, or with this one; there has to be a door that is closed.
    pub(super) async fn knock(visit: &Visit, token: Option<&str>) -> Result<Self, Unmet> {
        let with_token = visit.caller()?.has_header("authorization");
        if !with_token && visit.session().await.is_ok() {
            return Err(open_to_all());
        }
        if visit.caller()?.scheme().is_some_and(|own| !is_oauth(own)) {
            return Err(another_way());
        }
        let door = Self::open(visit, token).await?;
        match door.status {
            // Clients and servers may agree on a way of their own, of which this authorization says nothing.
            401 if door.has_another_way() => Err(another_way()),
            401 => Ok(door),
            400 | 403 if with_token || !door.challenges.is_empty() => Ok(door),
            200..300 => Err(open_to_all()),
            status => Err(Unmet::not_tested(format!(
                "the server refuses with the status {status}"
            ))),
        }
    }

    /// Begins a conversation without a token, or with this one.
    pub(super) async fn open(visit: &Visit, token: Option<&str>) -> Result<Self, Unmet> {
        Self::say(visit, &Self::opening(visit), token).await
    }

    fn opening(visit: &Visit) -> Value {
        let speech = Speech::new(visit.revision);
        match speech.has_handshake() {
            true => speech.request(1, "initialize", speech.initialize()),
            false => speech.request(1, "server/discover", Value::Null),
        }
    }

    /// Begins a conversation without anything that the user gave to go with requests.
    pub(super) async fn without_credentials(visit: &Visit) -> Result<Self, Unmet> {
        let message = Self::opening(visit);
        let draft = visit.caller()?.request("POST").without_credentials();
        Self::send(visit, &message, draft).await
    }

    /// Asks for something without a token.
    pub(super) async fn ask_for(visit: &Visit, method: &str) -> Result<Self, Unmet> {
        let speech = Speech::new(visit.revision);
        Self::say(visit, &speech.request(1, method, Value::Null), None).await
    }

    async fn say(visit: &Visit, message: &Value, token: Option<&str>) -> Result<Self, Unmet> {
        let draft = visit.caller()?.request("POST").without("authorization");
        let draft = match token {
            Some(token) => draft.header("authorization", token),
            None => draft,
        };
        Self::send(visit, message, draft).await
    }

    async fn send(visit: &Visit, message: &Value, draft: Draft) -> Result<Self, Unmet> {
        let speech = Speech::new(visit.revision);
        let draft = draft.headers(speech.headers(message, None));
        let mut reply = draft.body(message.to_string()).deliberate().send().await?;
        reply.text(visit.options.silence).await;
        Ok(Self {
            status: reply.status,
            entries: reply.entries(),
            challenges: reply.all("www-authenticate"),
        })
    }

    /// Returns what `WWW-Authenticate` says.
    pub(super) fn header(&self) -> Option<&str> {
        self.challenges.first().map(String::as_str)
    }

    /// Returns the challenge that asks for a token.
    pub(super) fn bearer(&self) -> Option<Challenge> {
        let all = self
            .challenges
            .iter()
            .filter_map(|header| Challenge::parse(header).ok());
        let mut all = all.flatten();
        all.find(|one| one.is("bearer") || one.is("dpop"))
    }

    /// Says whether all challenges ask for something else than a token.
    fn has_another_way(&self) -> bool {
        let all = self.challenges.iter();
        let mut schemes = all
            .filter_map(|header| header.split_whitespace().next())
            .peekable();
        schemes.peek().is_some() && self.bearer().is_none() && !schemes.any(is_oauth)
    }

    pub(super) fn seen(&self) -> Outcome {
        Seen::at(self.entries)
    }

    pub(super) fn broken(&self, what: impl Into<String>) -> Unmet {
        Unmet::broken(what, self.entries)
    }
}

/// Returns the metadata: from where the challenge says, or from the well-known places.
pub(super) async fn metadata(visit: &Visit) -> Result<Found, Unmet> {
    let door = Door::knock(visit, None).await?;
    let bearer = door.bearer();
    let named = bearer
        .as_ref()
        .and_then(|bearer| bearer.parameter("resource_metadata"));
    let Some(url) = named else {
        let found = well_known(visit).await?;
        return found
            .ok_or_else(|| Unmet::not_tested("the server does not say where its metadata is"));
    };
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A server behind a proxy names itself as the world knows it: then the metadata may be here all the same.
    let reply = get(visit, path).await?;
    let ours = host.eq_ignore_ascii_case(visit.caller()?.host());
    match reply.status {
        200 => Ok(read(visit, reply).await),
        _ if !ours => Err(Unmet::not_tested(format!(
            "the metadata is elsewhere, at `{url}`"
        ))),
        status => {
            let what = format!("the status {status} where the metadata should be");
            Err(Unmet::broken(what, reply.entries()))
        }
    }
}

/// Returns the metadata from the well-known places, if it is there.
pub(super) async fn well_known(visit: &Visit) -> Result<Option<Found>, Unmet> {
    let caller = visit.caller()?;
    let root = "/.well-known/oauth-protected-resource";
    let path = caller.path().split('?').next().unwrap_or_default();
    for place in [
        format!("{root}{}", path.trim_end_matches('/')),
        root.to_owned(),
    ] {
        let reply = get(visit, &place).await?;
        if reply.status == 200 {
            return Ok(Some(read(visit, reply).await));
        }
    }
    Ok(None)
}

async fn get(visit: &Visit, path: &str) -> Result<Reply, Unmet> {
    let path = match path {
        "" => "/",
        path => path,
    };
    let draft = visit.caller()?.request_to("GET", path);
    let draft = draft
        .without("authorization")
        .header("accept", "application/json");
    draft.deliberate().send().await
}

async fn read(visit: &Visit, mut reply: Reply) -> Found {
    let text = reply.text(visit.options.patience).await;
    Found {
        value: serde_json::from_str(&text).unwrap_or_default(),
        entries: reply.entries(),
    }
}

/// Says whether a scheme is one by which tokens are shown.
fn is_oauth(scheme: &str) -> bool {
    ["bearer", "dpop"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
}

fn another_way() -> Unmet {
    Unmet::not_applicable("the server has a way of its own to know who asks")
}

fn open_to_all() -> Unmet {
    Unmet::not_applicable("the server wants no token")
}
