//! Requests that carry credentials, and are sent again when there are better ones.

use std::{fmt, sync::Arc};

use ::http::{HeaderName, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use turnbuckle_auth::{Authorize, Challenge, Credentials, Failure, Next, Refused, Sending, Step};

use super::{HttpError, REDIRECTS, Redirects, Response, Wire, refusal::challenges};
use crate::{
    held::Held,
    http::{headers::RequestHeaders, url::Url},
};

/// How often one request is sent, whatever is hoped for.
const ATTEMPTS: u32 = 5;

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Who has the credentials.
#[derive(Clone)]
pub(crate) struct Authorization(Arc<dyn Authorize>);

/// What a request that is refused may lead to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Login<'h> {
    /// A login, however long it takes; the time is noted, if somebody wants to know.
    Allowed(Option<&'h Held>),
    /// Nothing: nobody logs in to say goodbye.
    Never,
}

impl Authorization {
    pub(crate) fn new(authorize: impl Authorize) -> Self {
        Self(Arc::new(authorize))
    }

    /// Returns the extensions by which credentials are got.
    pub(crate) fn extensions(&self) -> &'static [&'static str] {
        self.0.extensions()
    }

    /// Passes on what a response says about the next proof.
    fn hear(&self, response: &Response) {
        if let Some(nonce) = response.header(DPOP_NONCE) {
            self.0.nonce(nonce);
        }
    }

    /// Finds out what to do about a refusal.
    async fn after(
        &self,
        response: &Response,
        sending: Sending<'_>,
        generation: u64,
        attempts: u32,
        login: Login<'_>,
    ) -> Result<Next, HttpError> {
        match login {
            Login::Allowed(_) => {
                let challenges = challenges_of(response);
                let status = response.status().as_u16();
                let refused = Refused::new(sending, status, &challenges, generation, attempts);
                login.hold(self.0.refused(refused)).await
            }
            // A nonce that was missing is all that is needed, and it is there now.
            Login::Never if response.header(DPOP_NONCE).is_some() && attempts == 1 => {
                Ok(Next::TryAgain)
            }
            Login::Never => Ok(Next::GiveUp),
        }
    }
}

impl Wire {
    /// Sends a request with credentials until it is let in, or nobody has better ones.
    pub(super) async fn authorized(
        &self,
        authorization: &Authorization,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
        login: Login<'_>,
    ) -> Result<Response, HttpError> {
        let mut url = url.clone();
        let mut redirects = Redirects::up_to(REDIRECTS);
        let mut attempts = 0;
        loop {
            // Asked for anew even after a redirect: a proof is good for one URL only, and only once.
            let sending = Sending::new(method.as_str(), url.as_str());
            let credentials = login.hold(authorization.0.credentials(sending)).await?;
            let own = &with(headers.own, &credentials)?;
            let headers = RequestHeaders { own, ..headers };
            let response = self.once(method, &url, headers, body).await?;
            authorization.hear(&response);
            if response.status().is_redirection() {
                let next = redirects.follow(method, &response)?;
                response.skip().await;
                url = next;
                continue;
            }
            attempts += 1;
            if !is_refused(&response) || attempts == ATTEMPTS {
                return Ok(response);
            }
            let generation = credentials.generation;
            let next = authorization.after(&response, sending, generation, attempts, login);
            match next.await? {
                Next::TryAgain => response.skip().await,
                Next::GiveUp => return Ok(response),
            }
        }
    }
}

impl Login<'_> {
    /// Waits for whoever has the credentials.
    async fn hold<T>(
        self,
        waiting: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, HttpError> {
        let _holding = match self {
            Self::Allowed(held) => held.map(Held::hold),
            Self::Never => None,
        };
        waiting.await.map_err(HttpError::Authorization)
    }
}

fn is_refused(response: &Response) -> bool {
    matches!(
        response.status(),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    )
}

/// Reads what the server wants; what cannot be read says nothing.
fn challenges_of(response: &Response) -> Vec<Challenge> {
    let headers = challenges(response.headers());
    let parsed = headers.iter().flat_map(|header| Challenge::parse(header));
    parsed.flatten().collect()
}

/// Adds credentials to the headers of a request.
fn with(
    headers: &[(HeaderName, HeaderValue)],
    credentials: &Credentials,
) -> Result<Vec<(HeaderName, HeaderValue)>, HttpError> {
    let mut all = headers.to_vec();
    for (name, value) in &credentials.headers {
        let name = name.parse::<HeaderName>();
        let value = HeaderValue::from_str(value.expose());
        let (Ok(name), Ok(mut value)) = (name, value) else {
            let reason = "it holds a character that no header can hold";
            return Err(HttpError::Authorization(Failure::new(Step::Use, reason)));
        };
        value.set_sensitive(true);
        all.push((name, value));
    }
    Ok(all)
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization")
    }
}
