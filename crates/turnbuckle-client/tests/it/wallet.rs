//! Somebody who has credentials: as many as a test says, after as long as it says.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep, CredentialProvider, Credentials, RetryDecision, Secret,
    UnauthorizedResponse, UnsignedRequest,
};
use turnbuckle_protocol::authenticator::BoxFuture;

use crate::{
    fake_http::{FakeHttp, Reply, Seen},
    http_peer::server,
};

type Brought<'a, T> = BoxFuture<'a, Result<T, AuthorizationError>>;

/// Brings `token-1`, then `token-2` and so on, one for each refusal of the last.
#[derive(Clone, Default)]
pub(crate) struct Wallet(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// One login at a time.
    logins: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    generation: u64,
    takes: Duration,
    /// What is done when there is nothing newer than what was refused; another login if nothing is said.
    then: Option<Result<RetryDecision, AuthorizationError>>,
    told: Vec<Told>,
    asked: Vec<(String, String)>,
    nonces: Vec<String>,
}

/// A refusal that was heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) method: String,
    pub(crate) status: u16,
    /// The schemes and the scopes of the challenges.
    pub(crate) challenges: Vec<String>,
    pub(crate) generation: u64,
    pub(crate) attempts: u32,
}

impl Wallet {
    /// Takes so long for each login.
    pub(crate) fn taking(time: Duration) -> Self {
        let wallet = Self::default();
        wallet.lock().takes = time;
        wallet
    }

    /// Has a token before anybody asks.
    pub(crate) fn with_token(self) -> Self {
        self.lock().generation = 1;
        self
    }

    /// Does nothing more from now on than say so.
    pub(crate) fn gives_up(&self) {
        self.lock().then = Some(Ok(RetryDecision::GiveUp));
    }

    /// Has everything sent again as it was.
    pub(crate) fn insists(&self) {
        self.lock().then = Some(Ok(RetryDecision::Retry));
    }

    /// Fails from now on.
    pub(crate) fn fails(&self) {
        let failure = AuthorizationError::new(AuthorizationStep::Refresh, "the login was revoked")
            .with_hint("log in again");
        self.lock().then = Some(Err(failure));
    }

    /// The refusals it was told of.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.lock().told.clone()
    }

    /// The methods and URLs it was asked about.
    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.lock().asked.clone()
    }

    pub(crate) fn nonces(&self) -> Vec<String> {
        self.lock().nonces.clone()
    }

    /// How often somebody logged in.
    pub(crate) fn logins(&self) -> u64 {
        self.lock().generation
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    async fn log_in(&self, refused: u64) -> Result<RetryDecision, AuthorizationError> {
        let _alone = self.0.logins.lock().await;
        let (current, takes, then) = {
            let state = self.lock();
            (state.generation, state.takes, state.then.clone())
        };
        if current != refused {
            return Ok(RetryDecision::Retry);
        }
        tokio::time::sleep(takes).await;
        if let Some(then) = then {
            return then;
        }
        self.lock().generation += 1;
        Ok(RetryDecision::Retry)
    }
}

impl CredentialProvider for Wallet {
    fn credentials<'a>(&'a self, sending: UnsignedRequest<'a>) -> Brought<'a, Credentials> {
        let mut state = self.lock();
        let asked = (sending.method.to_owned(), sending.url.to_owned());
        state.asked.push(asked);
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
        refused: UnauthorizedResponse<'a>,
    ) -> Brought<'a, RetryDecision> {
        let challenges = refused.challenges.iter();
        let described = challenges.map(|challenge| {
            let scope = challenge.parameter("scope").unwrap_or_default();
            let scheme = ["Basic", "Bearer"]
                .into_iter()
                .find(|name| challenge.is_scheme(name));
            format!("{} {scope}", scheme.unwrap()).trim().to_owned()
        });
        self.lock().told.push(Told {
            method: refused.request.method.to_owned(),
            status: refused.status,
            challenges: described.collect(),
            generation: refused.generation,
            attempts: refused.attempts,
        });
        Box::pin(self.log_in(refused.generation))
    }

    fn set_dpop_nonce(&self, nonce: &str) {
        self.lock().nonces.push(nonce.to_owned());
    }
}

/// The refusal of a server that wants a token.
pub(crate) fn unauthorized() -> Reply {
    let challenge = r#"Basic realm="old", Bearer scope="files:read", resource_metadata="http://fake.test/.well-known/oauth-protected-resource""#;
    Reply::status(401).header("www-authenticate", challenge)
}

/// The number of the token that came with a request; 0 if there was none.
pub(crate) fn token(seen: &Seen) -> u64 {
    let header = seen.header("authorization");
    let number = header.strip_prefix("Bearer token-").unwrap_or("0");
    number.parse().unwrap()
}

/// A server that lets requests in from a token of this number on, and then does what the test says.
pub(crate) fn guarded(
    revision: &'static str,
    from: impl Fn(&Seen) -> u64 + Send + Sync + 'static,
    answer: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
) -> FakeHttp {
    server(revision, move |seen| {
        if token(seen) < from(seen) {
            Some(unauthorized())
        } else {
            answer(seen)
        }
    })
}
