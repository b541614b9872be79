//! A client, a server that refuses, an authorization server that rotates, and a person who logs in.

mod clients;
mod login;
mod proofs;
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
        tests::fake_http::{ISSUER, SERVER, Web, json_response, parameter},
        user_agent::UserAgent,
    },
};

/// An authorization server: each token is another one, and each refresh token is good for one time.
#[derive(Clone, Default)]
struct Issuer(Arc<Mutex<Given>>);

#[derive(Default)]
struct Given {
    count: usize,
    access: Option<String>,
    refresh: Option<String>,
}

impl Issuer {
    /// Gives tokens at the usual raw_url.
    fn tokens(&self, web: Web) -> Web {
        let this = self.clone();
        web.rule(move |heard| {
            (heard.url == format!("{ISSUER}/token")).then(|| Ok(this.answer(heard)))
        })
    }

    fn answer(
        &self,
        heard: &crate::client::tests::fake_http::Heard,
    ) -> crate::fetch::FetchResponse {
        let mut given = self.0.lock().unwrap();
        let shown = heard.field("refresh_token");
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

    /// How many tokens were given.
    fn count(&self) -> usize {
        self.0.lock().unwrap().count
    }

    /// Lets no token in any more that was given until now.
    fn end_access(&self) {
        self.0.lock().unwrap().access = None;
    }

    /// Takes no refresh token any more.
    fn end_refresh(&self) {
        self.0.lock().unwrap().refresh = None;
    }

    /// Judges as the server does that trusts this issuer.
    fn judge(&self, sent: &Sent) -> Judgement {
        let given = self.0.lock().unwrap();
        let access = given.access.as_ref().map(|token| format!("Bearer {token}"));
        if sent.authorization.is_some() && sent.authorization == access {
            Ok(())
        } else {
            Err((401, r#"Bearer scope="read""#.to_owned()))
        }
    }
}

type Says = dyn Fn(&str) -> Result<String, AuthorizationError> + Send + Sync;

/// A person who logs in at once, and what they saw.
#[derive(Clone)]
struct Person {
    seen: Arc<Mutex<Vec<String>>>,
    says: Arc<Says>,
    port: Arc<AtomicUsize>,
    /// How long they look at the page.
    hesitates: Duration,
}

impl Person {
    fn willing() -> Person {
        Person::saying(|url| {
            let state = parameter(url, "state").unwrap();
            Ok(format!("code=code&state={state}&iss={ISSUER}"))
        })
    }

    fn denying() -> Person {
        Person::saying(|url| {
            let state = parameter(url, "state").unwrap();
            Ok(format!("error=access_denied&state={state}&iss={ISSUER}"))
        })
    }

    fn saying(
        says: impl Fn(&str) -> Result<String, AuthorizationError> + Send + Sync + 'static,
    ) -> Person {
        Person {
            seen: Arc::default(),
            says: Arc::new(says),
            port: Arc::new(AtomicUsize::new(7001)),
            hesitates: Duration::ZERO,
        }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// What was asked for at the last login.
    fn asked(&self) -> Option<Scopes> {
        let url = self.seen().pop().unwrap();
        parameter(&url, "scope").map(|scope| scope.parse().unwrap())
    }
}

impl UserAgent for Person {
    fn redirect_uri<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        let port = self.port.load(Ordering::Relaxed);
        let uri = format!("http://127.0.0.1:{port}/callback");
        Box::pin(async { Ok(uri) })
    }

    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        self.seen.lock().unwrap().push(url.to_owned());
        Box::pin(async move {
            // Others go on while a person is at it.
            tokio::time::sleep(self.hesitates).await;
            tokio::task::yield_now().await;
            (self.says)(url)
        })
    }

    fn show_device_code<'a>(
        &'a self,
        code: &'a DeviceCode,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        self.seen.lock().unwrap().push(code.user_code.clone());
        Box::pin(async { Ok(()) })
    }
}

/// What a server hears.
#[derive(Clone, Debug)]
struct Sent {
    authorization: Option<String>,
    dpop: Option<String>,
}

/// Whether a request is let in; else the status and the challenge.
type Judgement = Result<(), (u16, String)>;

/// How a call ended: let in, or with a status.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    In,
    Refused(u16),
}

/// Sends a request as the client on HTTP does: again and again as long as it is told to.
async fn call(
    oauth: &OAuth,
    judge: impl Fn(&Sent) -> Judgement,
) -> Result<Ended, AuthorizationError> {
    let request = UnsignedRequest::new("POST", SERVER);
    for attempts in 1.. {
        let credentials = oauth.credentials(request).await?;
        let header = |name: &str| {
            let mut headers = credentials.headers.iter();
            let found = headers.find(|(own, _)| *own == name);
            found.map(|(_, value)| value.expose().to_owned())
        };
        let sent = Sent {
            authorization: header("authorization"),
            dpop: header("dpop"),
        };
        // Others are answered in the meantime.
        tokio::task::yield_now().await;
        let Err((status, challenge)) = judge(&sent) else {
            return Ok(Ended::In);
        };
        let challenges = Challenge::parse(&challenge).unwrap();
        let generation = credentials.generation;
        let refused = UnauthorizedResponse::new(request, status, &challenges, generation, attempts);
        if oauth.on_unauthorized(refused).await? == RetryDecision::GiveUp {
            return Ok(Ended::Refused(status));
        }
    }
    unreachable!("attempts are limited")
}

/// A client of the usual server, with a person.
fn client(web: &Web, person: &Person) -> OAuth {
    OAuth::new(SERVER, Arc::new(web.clone())).user_agent(person.clone())
}

fn scopes(text: &str) -> Scopes {
    text.parse().unwrap()
}
