//! Requests with credentials, which are sent again if the server rejects them.

use std::{fmt, sync::Arc};

use ::http::{HeaderName, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep, Challenge, CredentialProvider, Credentials,
    RetryDecision, UnauthorizedResponse, UnsignedRequest,
};

use crate::{
    client::timeout::AuthWait,
    transport::{
        http::{headers::RequestHeaders, url::Url},
        http_client::{
            HttpClient, HttpError, HttpResponse, MAX_REDIRECTS, RedirectPolicy,
            response::challenges,
        },
    },
};

/// Maximum number of attempts per request.
const MAX_SENDS: u32 = 5;

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The credential provider.
#[derive(Clone)]
pub(crate) struct Authorization(Arc<dyn CredentialProvider>);

/// The handling of rejected credentials.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AuthPolicy<'h> {
    /// Obtain new ones, for example by a login; the time is recorded.
    Allowed(Option<&'h AuthWait>),
    /// Do not obtain new ones: ending a session is not worth a login.
    Never,
}

impl Authorization {
    pub(crate) fn new(authorize: impl CredentialProvider) -> Self {
        Self(Arc::new(authorize))
    }

    /// Returns the extensions that the provider uses.
    pub(crate) fn extensions(&self) -> &'static [&'static str] {
        self.0.extensions()
    }

    /// Passes the DPoP nonce of a response to the provider.
    fn record_nonce(&self, response: &HttpResponse) {
        if let Some(nonce) = response.header(DPOP_NONCE) {
            self.0.set_dpop_nonce(nonce);
        }
    }

    /// Returns whether to send a rejected request again.
    async fn on_unauthorized(
        &self,
        response: &HttpResponse,
        unsigned: UnsignedRequest<'_>,
        generation: u64,
        attempts: u32,
        auth_policy: AuthPolicy<'_>,
    ) -> Result<RetryDecision, HttpError> {
        match auth_policy {
            AuthPolicy::Allowed(_) => {
                let challenges = parse_challenges(response);
                let status = response.status().as_u16();
                let unauthorized =
                    UnauthorizedResponse::new(unsigned, status, &challenges, generation, attempts);
                auth_policy
                    .time_auth(self.0.on_unauthorized(unauthorized))
                    .await
            }
            // Only the nonce was missing, and it has just been recorded.
            AuthPolicy::Never if response.header(DPOP_NONCE).is_some() && attempts == 1 => {
                Ok(RetryDecision::Retry)
            }
            AuthPolicy::Never => Ok(RetryDecision::GiveUp),
        }
    }
}

impl HttpClient {
    /// Sends a request with credentials, until it is accepted or the provider gives up.
    pub(super) async fn send_authorized(
        &self,
        authorization: &Authorization,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
        auth_policy: AuthPolicy<'_>,
    ) -> Result<HttpResponse, HttpError> {
        let mut url = url.clone();
        let mut redirects = RedirectPolicy::up_to(MAX_REDIRECTS);
        let mut attempts = 0;
        loop {
            // Requested again after a redirect: a proof is valid for one URL and one use.
            let unsigned = UnsignedRequest::new(method.as_str(), url.as_str());
            let credentials = auth_policy
                .time_auth(authorization.0.credentials(unsigned))
                .await?;
            let own = &with_credentials(headers.own, &credentials)?;
            let headers = RequestHeaders { own, ..headers };
            let response = self.send_once(method, &url, headers, body).await?;
            authorization.record_nonce(&response);
            if response.status().is_redirection() {
                let next = redirects.follow(method, &response)?;
                response.drain().await;
                url = next;
                continue;
            }
            attempts += 1;
            if !is_auth_rejection(&response) || attempts == MAX_SENDS {
                return Ok(response);
            }
            let generation = credentials.generation;
            let next = authorization.on_unauthorized(
                &response,
                unsigned,
                generation,
                attempts,
                auth_policy,
            );
            match next.await? {
                RetryDecision::Retry => response.drain().await,
                RetryDecision::GiveUp => return Ok(response),
            }
        }
    }
}

impl AuthPolicy<'_> {
    /// Waits for the provider, and records the time.
    async fn time_auth<T>(
        self,
        pending: impl Future<Output = Result<T, AuthorizationError>>,
    ) -> Result<T, HttpError> {
        let _auth_wait_guard = match self {
            Self::Allowed(auth_wait) => auth_wait.map(AuthWait::begin),
            Self::Never => None,
        };
        pending.await.map_err(HttpError::Authorization)
    }
}

fn is_auth_rejection(response: &HttpResponse) -> bool {
    matches!(
        response.status(),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    )
}

/// Parses the challenges of a response; invalid ones are ignored.
fn parse_challenges(response: &HttpResponse) -> Vec<Challenge> {
    let headers = challenges(response.headers());
    let parsed = headers.iter().flat_map(|header| Challenge::parse(header));
    parsed.flatten().collect()
}

/// Adds credentials to the headers of a request.
fn with_credentials(
    headers: &[(HeaderName, HeaderValue)],
    credentials: &Credentials,
) -> Result<Vec<(HeaderName, HeaderValue)>, HttpError> {
    let mut all = headers.to_vec();
    for (name, value) in &credentials.headers {
        let name = name.parse::<HeaderName>();
        let value = HeaderValue::from_str(value.expose());
        let (Ok(name), Ok(mut value)) = (name, value) else {
            let reason = "a credential contains a character that is invalid in a header";
            return Err(HttpError::Authorization(AuthorizationError::new(
                AuthorizationStep::Use,
                reason,
            )));
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
