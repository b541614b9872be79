//! A client, an MCP server that requires tokens, an authorization server that rotates refresh tokens, and a user.

mod clients;
mod dpop;
mod login;
mod refresh;
mod sharing;
mod step_up;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use turnbuckle_protocol::authenticator::BoxFuture;

use super::OAuth;
use crate::{
    AuthorizationError, Challenge, CredentialProvider, RetryDecision, Scopes, UnauthorizedResponse,
    UnsignedRequest,
    client::{
        device::DeviceCode,
        tests::fake_http::{FakeHttp, ISSUER, SERVER, json_response, parameter},
        user_agent::UserAgent,
    },
};

/// An authorization server that issues a new token each time; a refresh token can be used once.
#[derive(Clone, Default)]
struct Issuer(Arc<Mutex<IssuedTokens>>);

#[derive(Default)]
struct IssuedTokens {
    count: usize,
    access: Option<String>,
    refresh: Option<String>,
}

impl Issuer {
    /// Issues tokens at the token endpoint.
    fn tokens(&self, http: FakeHttp) -> FakeHttp {
        let this = self.clone();
        http.rule(move |request| {
            (request.url == format!("{ISSUER}/token")).then(|| Ok(this.answer(request)))
        })
    }

    fn answer(
        &self,
        request: &crate::client::tests::fake_http::RecordedRequest,
    ) -> crate::fetch::FetchResponse {
        let mut given = self.0.lock().unwrap();
        let shown = request.field("refresh_token");
        if shown.is_some() && shown != given.refresh {
            return json_response(400, r#"{"error":"invalid_grant"}"#);
        }
        given.count += 1;
        let [access, refresh] = ["access", "refresh"].map(|it| format!("{it}-{}", given.count));
        given.access = Some(access.clone());
        given.refresh = Some(refresh.clone());
        let body = json!({
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": 3600,
        });
        json_response(200, &body.to_string())
    }

    /// Returns the number of issued tokens.
    fn count(&self) -> usize {
        self.0.lock().unwrap().count
    }

    /// Revokes all access tokens.
    fn end_access(&self) {
        self.0.lock().unwrap().access = None;
    }

    /// Revokes all refresh tokens.
    fn end_refresh(&self) {
        self.0.lock().unwrap().refresh = None;
    }

    /// Authenticates a request like a server that trusts this issuer.
    fn authenticate(&self, sent: &SentCredentials) -> AuthDecision {
        let given = self.0.lock().unwrap();
        let access = given.access.as_ref().map(|token| format!("Bearer {token}"));
        if sent.authorization.is_some() && sent.authorization == access {
            Ok(())
        } else {
            Err((401, r#"Bearer scope="read""#.to_owned()))
        }
    }
}

type RespondFn = dyn Fn(&str) -> Result<String, AuthorizationError> + Send + Sync;

/// A user who logs in at once, and the URLs and codes shown to them.
#[derive(Clone)]
struct FakeUser {
    shown: Arc<Mutex<Vec<String>>>,
    respond: Arc<RespondFn>,
    port: Arc<AtomicUsize>,
    /// The time until the login completes.
    delay: Duration,
}

impl FakeUser {
    fn willing() -> FakeUser {
        FakeUser::responding(|url| {
            let state = parameter(url, "state").unwrap();
            Ok(format!("code=code&state={state}&iss={ISSUER}"))
        })
    }

    fn denying() -> FakeUser {
        FakeUser::responding(|url| {
            let state = parameter(url, "state").unwrap();
            Ok(format!("error=access_denied&state={state}&iss={ISSUER}"))
        })
    }

    fn responding(
        respond: impl Fn(&str) -> Result<String, AuthorizationError> + Send + Sync + 'static,
    ) -> FakeUser {
        FakeUser {
            shown: Arc::default(),
            respond: Arc::new(respond),
            port: Arc::new(AtomicUsize::new(7001)),
            delay: Duration::ZERO,
        }
    }

    fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().clone()
    }

    /// Returns the scopes requested at the last login.
    fn requested_scopes(&self) -> Option<Scopes> {
        let url = self.shown().pop().unwrap();
        parameter(&url, "scope").map(|scope| scope.parse().unwrap())
    }
}

impl UserAgent for FakeUser {
    fn redirect_uri<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        let port = self.port.load(Ordering::Relaxed);
        let uri = format!("http://127.0.0.1:{port}/callback");
        Box::pin(async { Ok(uri) })
    }

    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        self.shown.lock().unwrap().push(url.to_owned());
        Box::pin(async move {
            // Other tasks run while the user logs in.
            tokio::time::sleep(self.delay).await;
            tokio::task::yield_now().await;
            (self.respond)(url)
        })
    }

    fn show_device_code<'a>(
        &'a self,
        code: &'a DeviceCode,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        self.shown.lock().unwrap().push(code.user_code.clone());
        Box::pin(async { Ok(()) })
    }
}

/// The credentials that a server receives.
#[derive(Clone, Debug)]
struct SentCredentials {
    authorization: Option<String>,
    dpop: Option<String>,
}

/// The decision of a server: accepted, or the status and challenge of the rejection.
type AuthDecision = Result<(), (u16, String)>;

/// The end of a call.
#[derive(Debug, PartialEq, Eq)]
enum CallEnd {
    Accepted,
    Rejected(u16),
}

/// Sends a request like the HTTP client: again as long as the provider returns `Retry`.
async fn call(
    oauth: &OAuth,
    authenticate: impl Fn(&SentCredentials) -> AuthDecision,
) -> Result<CallEnd, AuthorizationError> {
    let request = UnsignedRequest::new("POST", SERVER);
    for attempts in 1.. {
        let credentials = oauth.credentials(request).await?;
        let header = |name: &str| {
            let mut headers = credentials.headers.iter();
            let found = headers.find(|(own, _)| *own == name);
            found.map(|(_, value)| value.expose().to_owned())
        };
        let sent = SentCredentials {
            authorization: header("authorization"),
            dpop: header("dpop"),
        };
        // Other requests run in between.
        tokio::task::yield_now().await;
        let Err((status, challenge)) = authenticate(&sent) else {
            return Ok(CallEnd::Accepted);
        };
        let challenges = Challenge::parse(&challenge).unwrap();
        let generation = credentials.generation;
        let error = UnauthorizedResponse::new(request, status, &challenges, generation, attempts);
        if oauth.on_unauthorized(error).await? == RetryDecision::GiveUp {
            return Ok(CallEnd::Rejected(status));
        }
    }
    unreachable!("attempts are limited")
}

/// Returns a client of the default server, with a user.
fn client(http: &FakeHttp, user: &FakeUser) -> OAuth {
    OAuth::new(SERVER, Arc::new(http.clone())).user_agent(user.clone())
}

fn scopes(text: &str) -> Scopes {
    text.parse().unwrap()
}
