//! Coming to a server without a token, and reading what it says then.

use serde_json::Value;
use turnbuckle_client::auth::Challenge;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    session::request_builder::RequestBuilder,
    wire::http::{RawHttpRequest, RawHttpResponse},
};

/// What a server said to somebody without a token that is good.
pub(super) struct ChallengeProbe {
    pub(super) status: u16,
    pub(super) entries: [usize; 2],
    challenges: Vec<String>,
}

/// The metadata of a server.
pub(super) struct ResourceMetadata {
    pub(super) value: Value,
    pub(super) entries: [usize; 2],
}

impl ChallengeProbe {
    /// Comes without a token, or with this one; there has to be a door that is closed.
    pub(super) async fn require_challenge(
        ctx: &CheckContext,
        token: Option<&str>,
    ) -> Result<Self, NotPassed> {
        let with_token = ctx.http_client()?.has_header("authorization");
        if !with_token && ctx.session().await.is_ok() {
            return Err(not_protected());
        }
        if ctx
            .http_client()?
            .scheme()
            .is_some_and(|own| !is_oauth(own))
        {
            return Err(other_scheme());
        }
        let probe = Self::open(ctx, token).await?;
        match probe.status {
            // Clients and servers may agree on a way of their own, of which this authorization says nothing.
            401 if probe.has_another_way() => Err(other_scheme()),
            401 => Ok(probe),
            400 | 403 if with_token || !probe.challenges.is_empty() => Ok(probe),
            200..300 => Err(not_protected()),
            status => Err(NotPassed::not_tested(format!(
                "the server refuses with the status {status}"
            ))),
        }
    }

    /// Begins a conversation without a token, or with this one.
    pub(super) async fn open(ctx: &CheckContext, token: Option<&str>) -> Result<Self, NotPassed> {
        Self::say(ctx, &Self::opening(ctx), token).await
    }

    fn opening(ctx: &CheckContext) -> Value {
        let request_builder = RequestBuilder::new(ctx.revision);
        if request_builder.has_handshake() {
            request_builder.request(1, "initialize", request_builder.initialize())
        } else {
            request_builder.request(1, "server/discover", Value::Null)
        }
    }

    /// Begins a conversation without anything that the user gave to go with requests.
    pub(super) async fn without_credentials(ctx: &CheckContext) -> Result<Self, NotPassed> {
        let message = Self::opening(ctx);
        let raw_request = ctx.http_client()?.request("POST").without_credentials();
        Self::send(ctx, &message, raw_request).await
    }

    /// Asks for something without a token.
    pub(super) async fn ask_for(ctx: &CheckContext, method: &str) -> Result<Self, NotPassed> {
        let request_builder = RequestBuilder::new(ctx.revision);
        Self::say(ctx, &request_builder.request(1, method, Value::Null), None).await
    }

    async fn say(
        ctx: &CheckContext,
        message: &Value,
        token: Option<&str>,
    ) -> Result<Self, NotPassed> {
        let raw_request = ctx.http_client()?.request("POST").without("authorization");
        let raw_request = match token {
            Some(token) => raw_request.header("authorization", token),
            None => raw_request,
        };
        Self::send(ctx, message, raw_request).await
    }

    async fn send(
        ctx: &CheckContext,
        message: &Value,
        raw_request: RawHttpRequest,
    ) -> Result<Self, NotPassed> {
        let request_builder = RequestBuilder::new(ctx.revision);
        let raw_request = raw_request.headers(request_builder.headers(message, None));
        let mut reply = raw_request
            .body(message.to_string())
            .deliberately_invalid()
            .send()
            .await?;
        reply.text(ctx.options.quiet_period).await;
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
        all.find(|one| one.is_scheme("bearer") || one.is_scheme("dpop"))
    }

    /// Says whether all challenges ask for something else than a token.
    fn has_another_way(&self) -> bool {
        let all = self.challenges.iter();
        let mut schemes = all
            .filter_map(|header| header.split_whitespace().next())
            .peekable();
        schemes.peek().is_some() && self.bearer().is_none() && !schemes.any(is_oauth)
    }

    pub(super) fn evidence(&self) -> Outcome {
        Evidence::from_entries(self.entries)
    }

    pub(super) fn violation(&self, observed: impl Into<String>) -> NotPassed {
        NotPassed::violation(observed, self.entries)
    }
}

/// Returns the metadata: from where the challenge says, or from the well-known places.
pub(super) async fn metadata(ctx: &CheckContext) -> Result<ResourceMetadata, NotPassed> {
    let probe = ChallengeProbe::require_challenge(ctx, None).await?;
    let bearer = probe.bearer();
    let named = bearer
        .as_ref()
        .and_then(|bearer| bearer.parameter("resource_metadata"));
    let Some(url) = named else {
        let found = well_known(ctx).await?;
        return found
            .ok_or_else(|| NotPassed::not_tested("the server does not say where its metadata is"));
    };
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A server behind a proxy names itself as the world knows it: then the metadata may be here all the same.
    let reply = get(ctx, path).await?;
    let ours = host.eq_ignore_ascii_case(ctx.http_client()?.host());
    match reply.status {
        200 => Ok(read(ctx, reply).await),
        _ if !ours => Err(NotPassed::not_tested(format!(
            "the metadata is elsewhere, at `{url}`"
        ))),
        status => {
            let observed = format!("the status {status} where the metadata should be");
            Err(NotPassed::violation(observed, reply.entries()))
        }
    }
}

/// Returns the metadata from the well-known places, if it is there.
pub(super) async fn well_known(ctx: &CheckContext) -> Result<Option<ResourceMetadata>, NotPassed> {
    let http_client = ctx.http_client()?;
    let root = "/.well-known/oauth-protected-resource";
    let path = http_client.path().split('?').next().unwrap_or_default();
    for place in [
        format!("{root}{}", path.trim_end_matches('/')),
        root.to_owned(),
    ] {
        let reply = get(ctx, &place).await?;
        if reply.status == 200 {
            return Ok(Some(read(ctx, reply).await));
        }
    }
    Ok(None)
}

async fn get(ctx: &CheckContext, path: &str) -> Result<RawHttpResponse, NotPassed> {
    let path = match path {
        "" => "/",
        path => path,
    };
    let raw_request = ctx.http_client()?.request_to("GET", path);
    let raw_request = raw_request
        .without("authorization")
        .header("accept", "application/json");
    raw_request.deliberately_invalid().send().await
}

async fn read(ctx: &CheckContext, mut reply: RawHttpResponse) -> ResourceMetadata {
    let text = reply.text(ctx.options.response_timeout).await;
    ResourceMetadata {
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

fn other_scheme() -> NotPassed {
    NotPassed::not_applicable("the server has a way of its own to know who asks")
}

fn not_protected() -> NotPassed {
    NotPassed::not_applicable("the server wants no token")
}
