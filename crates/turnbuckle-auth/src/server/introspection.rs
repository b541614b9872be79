//! Tokens that only their issuer can read (RFC 7662).

use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::flaw::{Flaw, NotVerified};
use crate::{
    Secret,
    fetch::{Fetch, Request},
    form::{Form, basic},
};

/// The most tokens that are asked about at one time.
const AT_ONCE: usize = 32;

/// An issuer that is asked about its tokens.
pub(super) struct Introspection {
    endpoint: String,
    /// The value of `Authorization` by which the issuer knows us.
    authorization: Secret,
    turn: Semaphore,
}

impl Introspection {
    pub(super) fn new(endpoint: String, client: &str, password: &Secret) -> Self {
        Self {
            endpoint,
            authorization: basic(client, password),
            turn: Semaphore::new(AT_ONCE),
        }
    }

    /// Asks what the token says.
    pub(super) async fn ask(
        &self,
        token: &str,
        issuer: &str,
        fetch: &dyn Fetch,
    ) -> Result<Map<String, Value>, NotVerified> {
        let form = Form::default()
            .with("token", token)
            .with("token_type_hint", "access_token");
        let request = Request::post(&self.endpoint, Form::CONTENT_TYPE, form.into_string())
            .header("authorization", self.authorization.expose());
        let response = {
            let _turn = self.turn.acquire().await;
            fetch.fetch(request).await
        };
        let unreachable = |reason: &str| {
            tracing::warn!(issuer, reason, "no answer about a token");
            NotVerified::Unreachable
        };
        let body = match response {
            Ok(response) if response.status == 200 => response.body,
            Ok(response) => return Err(unreachable(&format!("status {}", response.status))),
            Err(error) => return Err(unreachable(&error.to_string())),
        };
        let claims: Map<String, Value> =
            serde_json::from_slice(&body).map_err(|error| unreachable(&error.to_string()))?;
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(Flaw::Inactive.into());
        }
        match claims.get("iss") {
            Some(own) if own != issuer => Err(Flaw::Issuer.into()),
            _ => Ok(claims),
        }
    }
}
