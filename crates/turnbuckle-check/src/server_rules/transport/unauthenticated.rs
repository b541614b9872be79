//! Requests without a valid token, and the server's challenge.

use serde_json::Value;
use turnbuckle_client::auth::Challenge;
use turnbuckle_text::url::{HttpScheme, HttpUrl, split_authority};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    session::request_builder::RequestBuilder,
    wire::http::{RawHttpRequest, RawHttpResponse},
};

/// The response to a request without a valid token.
pub(super) struct ChallengeProbe {
    pub(super) status: u16,
    pub(super) entries: [usize; 2],
    challenges: Vec<String>,
}

/// The protected resource metadata of a server.
pub(super) struct ResourceMetadata {
    pub(super) value: Value,
    pub(super) entries: [usize; 2],
}

impl ChallengeProbe {
    /// Sends a request without a token, or with this one; the server must require a token.
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
            .is_some_and(|scheme| !is_oauth(scheme))
        {
            return Err(other_scheme());
        }
        let probe = Self::send_opening(ctx, token).await?;
        match probe.status {
            // Clients and servers may use a custom scheme, which the specification does not cover.
            401 if probe.has_other_scheme() => Err(other_scheme()),
            401 => Ok(probe),
            400 | 403 if with_token || !probe.challenges.is_empty() => Ok(probe),
            200..300 => Err(not_protected()),
            status => Err(NotPassed::not_tested(format!(
                "the server responds with HTTP status {status}"
            ))),
        }
    }

    /// Sends the first request of a session without a token, or with this one.
    pub(super) async fn send_opening(
        ctx: &CheckContext,
        token: Option<&str>,
    ) -> Result<Self, NotPassed> {
        Self::send_with_token(ctx, &Self::opening(ctx), token).await
    }

    fn opening(ctx: &CheckContext) -> Value {
        let request_builder = RequestBuilder::new(ctx.revision);
        if request_builder.has_handshake() {
            request_builder.request(1, "initialize", request_builder.initialize())
        } else {
            request_builder.request(1, "server/discover", Value::Null)
        }
    }

    /// Sends the first request of a session without the headers that the user configured.
    pub(super) async fn without_credentials(ctx: &CheckContext) -> Result<Self, NotPassed> {
        let message = Self::opening(ctx);
        let raw_request = ctx.http_client()?.request("POST").without_credentials();
        Self::send(ctx, &message, raw_request).await
    }

    /// Sends a request without a token.
    pub(super) async fn request_without_token(
        ctx: &CheckContext,
        method: &str,
    ) -> Result<Self, NotPassed> {
        let request_builder = RequestBuilder::new(ctx.revision);
        Self::send_with_token(ctx, &request_builder.request(1, method, Value::Null), None).await
    }

    async fn send_with_token(
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
        let mut response = raw_request
            .body(message.to_string())
            .deliberately_invalid()
            .send()
            .await?;
        response.text(ctx.pace.quiet_period()).await;
        Ok(Self {
            status: response.status,
            entries: response.entries(),
            challenges: response.all("www-authenticate"),
        })
    }

    /// Returns the first `WWW-Authenticate` header.
    pub(super) fn header(&self) -> Option<&str> {
        self.challenges.first().map(String::as_str)
    }

    /// Returns the challenge that requests a token.
    pub(super) fn bearer(&self) -> Option<Challenge> {
        let all = self
            .challenges
            .iter()
            .filter_map(|header| Challenge::parse(header).ok());
        let mut all = all.flatten();
        all.find(|one| one.is_scheme("bearer") || one.is_scheme("dpop"))
    }

    /// Returns whether all challenges request something other than a token.
    fn has_other_scheme(&self) -> bool {
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

/// Returns the metadata: from the URL of the challenge, or from the well-known URLs.
pub(super) async fn metadata(ctx: &CheckContext) -> Result<ResourceMetadata, NotPassed> {
    let probe = ChallengeProbe::require_challenge(ctx, None).await?;
    let bearer = probe.bearer();
    let named = bearer
        .as_ref()
        .and_then(|bearer| bearer.parameter("resource_metadata"));
    let Some(url) = named else {
        let found = well_known(ctx).await?;
        return found.ok_or_else(|| {
            NotPassed::not_tested("the server does not publish the URL of its metadata")
        });
    };
    let rest = HttpScheme::split(url).map_or(url, |(_, rest)| rest);
    let (_, path) = split_authority(rest);
    // A server behind a proxy uses its public name; the metadata may still be available here.
    let response = get(ctx, path).await?;
    let http_client = ctx.http_client()?;
    let is_same_host = HttpUrl::parse(url).is_ok_and(|url| http_client.is_host_of(&url));
    match response.status {
        200 => Ok(read(ctx, response).await),
        _ if !is_same_host => Err(NotPassed::not_tested(format!(
            "the metadata is on another host, at `{url}`"
        ))),
        status => {
            let observed = format!("HTTP status {status} for the metadata");
            Err(NotPassed::violation(observed, response.entries()))
        }
    }
}

/// Returns the metadata from the well-known URLs, if present.
pub(super) async fn well_known(ctx: &CheckContext) -> Result<Option<ResourceMetadata>, NotPassed> {
    let http_client = ctx.http_client()?;
    let root = "/.well-known/oauth-protected-resource";
    let path = http_client.path().split('?').next().unwrap_or_default();
    for path in [
        format!("{root}{}", path.trim_end_matches('/')),
        root.to_owned(),
    ] {
        let response = get(ctx, &path).await?;
        if response.status == 200 {
            return Ok(Some(read(ctx, response).await));
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

async fn read(ctx: &CheckContext, mut response: RawHttpResponse) -> ResourceMetadata {
    let text = response.text(ctx.pace.response_timeout()).await;
    ResourceMetadata {
        value: serde_json::from_str(&text).unwrap_or_default(),
        entries: response.entries(),
    }
}

/// Returns whether a scheme carries tokens.
fn is_oauth(scheme: &str) -> bool {
    ["bearer", "dpop"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
}

fn other_scheme() -> NotPassed {
    NotPassed::not_applicable("the server uses a custom authentication scheme")
}

fn not_protected() -> NotPassed {
    NotPassed::not_applicable("the server does not require a token")
}
