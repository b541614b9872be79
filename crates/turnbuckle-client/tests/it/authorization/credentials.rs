//! A credential provider for tests, with a configurable number of tokens and login time.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep, CredentialProvider, Credentials, RetryDecision, Secret,
    UnauthorizedResponse, UnsignedRequest,
};
use turnbuckle_protocol::authenticator::BoxFuture;

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::server,
};

type ProviderFuture<'a, T> = BoxFuture<'a, Result<T, AuthorizationError>>;

/// Provides `token-1`, then `token-2` and so on: a new token after each rejection.
#[derive(Clone, Default)]
pub(crate) struct TestCredentials(Arc<CredentialsInner>);

#[derive(Default)]
struct CredentialsInner {
    /// Held during a login.
    logins: tokio::sync::Mutex<()>,
    state: Mutex<CredentialsState>,
}

#[derive(Default)]
struct CredentialsState {
    generation: u64,
    login_time: Duration,
    /// The decision if the rejected token is the newest one; by default another login.
    next_decision: Option<Result<RetryDecision, AuthorizationError>>,
    rejections: Vec<RecordedRejection>,
    requests: Vec<(String, String)>,
    nonces: Vec<String>,
}

/// A recorded rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedRejection {
    pub(crate) method: String,
    pub(crate) status: u16,
    /// The schemes and the scopes of the challenges.
    pub(crate) challenges: Vec<String>,
    pub(crate) generation: u64,
    pub(crate) attempts: u32,
}

impl TestCredentials {
    /// Sets the time that each login takes.
    pub(crate) fn with_login_time(time: Duration) -> Self {
        let credentials = Self::default();
        credentials.lock().login_time = time;
        credentials
    }

    /// Provides a token before the first rejection.
    pub(crate) fn with_token(self) -> Self {
        self.lock().generation = 1;
        self
    }

    /// Gives up on later rejections.
    pub(crate) fn give_up(&self) {
        self.lock().next_decision = Some(Ok(RetryDecision::GiveUp));
    }

    /// Retries with the same token on later rejections.
    pub(crate) fn always_retry(&self) {
        self.lock().next_decision = Some(Ok(RetryDecision::Retry));
    }

    /// Fails on later rejections.
    pub(crate) fn fail(&self) {
        let failure = AuthorizationError::new(AuthorizationStep::Refresh, "the login was revoked")
            .with_hint("log in again");
        self.lock().next_decision = Some(Err(failure));
    }

    /// Returns the recorded rejections.
    pub(crate) fn rejections(&self) -> Vec<RecordedRejection> {
        self.lock().rejections.clone()
    }

    /// Returns the methods and URLs of the requests that needed credentials.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.lock().requests.clone()
    }

    pub(crate) fn nonces(&self) -> Vec<String> {
        self.lock().nonces.clone()
    }

    /// Returns the number of logins.
    pub(crate) fn logins(&self) -> u64 {
        self.lock().generation
    }

    fn lock(&self) -> MutexGuard<'_, CredentialsState> {
        self.0.state.lock().unwrap()
    }

    async fn log_in(&self, rejected: u64) -> Result<RetryDecision, AuthorizationError> {
        let _guard = self.0.logins.lock().await;
        let (current, login_time, next_decision) = {
            let state = self.lock();
            (
                state.generation,
                state.login_time,
                state.next_decision.clone(),
            )
        };
        if current != rejected {
            return Ok(RetryDecision::Retry);
        }
        tokio::time::sleep(login_time).await;
        if let Some(next_decision) = next_decision {
            return next_decision;
        }
        self.lock().generation += 1;
        Ok(RetryDecision::Retry)
    }
}

impl CredentialProvider for TestCredentials {
    fn credentials<'a>(&'a self, request: UnsignedRequest<'a>) -> ProviderFuture<'a, Credentials> {
        let mut state = self.lock();
        let request = (request.method.to_owned(), request.url.to_owned());
        state.requests.push(request);
        let headers = match state.generation {
            0 => Vec::new(),
            number => vec![(
                "authorization",
                Secret::new(format!("Bearer token-{number}")),
            )],
        };
        let credentials = Credentials::new(state.generation, headers);
        Box::pin(std::future::ready(Ok(credentials)))
    }

    fn on_unauthorized<'a>(
        &'a self,
        rejected: UnauthorizedResponse<'a>,
    ) -> ProviderFuture<'a, RetryDecision> {
        let challenges = rejected.challenges.iter();
        let described = challenges.map(|challenge| {
            let scope = challenge.parameter("scope").unwrap_or_default();
            let scheme = ["Basic", "Bearer"]
                .into_iter()
                .find(|name| challenge.is_scheme(name));
            format!("{} {scope}", scheme.unwrap()).trim().to_owned()
        });
        self.lock().rejections.push(RecordedRejection {
            method: rejected.request.method.to_owned(),
            status: rejected.status,
            challenges: described.collect(),
            generation: rejected.generation,
            attempts: rejected.attempts,
        });
        Box::pin(self.log_in(rejected.generation))
    }

    fn set_dpop_nonce(&self, nonce: &str) {
        self.lock().nonces.push(nonce.to_owned());
    }
}

/// The response of a server that requires a token.
pub(crate) fn unauthorized() -> MockResponse {
    let challenge = r#"Basic realm="old", Bearer scope="files:read", resource_metadata="http://fake.test/.well-known/oauth-protected-resource""#;
    MockResponse::status(401).header("www-authenticate", challenge)
}

/// Returns the number of the token of a request; 0 without a token.
pub(crate) fn token(request: &RecordedRequest) -> u64 {
    let header = request.header("authorization");
    let number = header.strip_prefix("Bearer token-").unwrap_or("0");
    number.parse().unwrap()
}

/// A server that accepts tokens with at least this number.
pub(crate) fn protected_server(
    revision: &'static str,
    from: impl Fn(&RecordedRequest) -> u64 + Send + Sync + 'static,
    respond: impl Fn(&RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static,
) -> MockHttpServer {
    server(revision, move |request| {
        if token(request) < from(request) {
            Some(unauthorized())
        } else {
            respond(request)
        }
    })
}
