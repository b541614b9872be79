//! Trusted issuers, and verification of their tokens by keys or introspection.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use turnbuckle_protocol::json;
use turnbuckle_text::percent::{FORM_CONTENT_TYPE, Form};

use super::{
    Clock,
    cached_document::{CachedDocument, fetch_document, fetch_issuer_metadata},
    rejection::{TokenError, VerifyError},
};
use crate::{
    Secret,
    basic_auth::basic_auth_header,
    fetch::{Fetch, FetchRequest},
    jwt::{Jwks, SignatureAlgorithm, UnverifiedJwt},
};

/// An authorization server that is trusted to issue tokens.
pub struct TrustedIssuer {
    name: String,
    verification: VerificationMethod,
}

/// The verification method for its tokens.
enum VerificationMethod {
    Keys(IssuerKeys),
    Introspection(IntrospectionClient),
}

impl TrustedIssuer {
    /// Verifies tokens with the keys that the metadata of the issuer refers to.
    ///
    /// `name` is the `iss` of its tokens, compared byte for byte.
    pub fn jwt(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            verification: VerificationMethod::Keys(IssuerKeys::remote(None)),
        }
    }

    /// Verifies tokens by introspection (RFC 7662).
    ///
    /// Results are cached for at most one minute. The introspection response must contain the audience.
    pub fn introspection(
        name: impl Into<String>,
        endpoint: impl Into<String>,
        client_id: &str,
        client_secret: &Secret,
    ) -> Self {
        let introspection = IntrospectionClient::new(endpoint.into(), client_id, client_secret);
        Self {
            name: name.into(),
            verification: VerificationMethod::Introspection(introspection),
        }
    }

    /// Verifies tokens with the keys at this URL.
    #[must_use]
    pub fn jwks_uri(mut self, url: impl Into<String>) -> Self {
        self.verification = VerificationMethod::Keys(IssuerKeys::remote(Some(url.into())));
        self
    }

    /// Verifies tokens with these keys only.
    #[must_use]
    pub fn jwks(mut self, keys: Jwks) -> Self {
        self.verification = VerificationMethod::Keys(IssuerKeys::Static(Arc::new(keys)));
        self
    }

    /// Returns the name, as in the `iss` of its tokens.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the tokens of the issuer may be opaque.
    pub(super) fn uses_introspection(&self) -> bool {
        matches!(self.verification, VerificationMethod::Introspection(_))
    }

    /// Verifies the signature of a token and returns its claims.
    pub(super) async fn verify(
        &self,
        token: UnverifiedJwt<'_>,
        algorithms: &[SignatureAlgorithm],
        fetch: &Arc<dyn Fetch>,
        clock: &Clock,
    ) -> Result<Map<String, Value>, VerifyError> {
        let VerificationMethod::Keys(keys) = &self.verification else {
            return Err(TokenError::UnknownToken.into());
        };
        if !algorithms.contains(&token.algorithm()) {
            return Err(TokenError::UnsupportedAlgorithm.into());
        }
        if !token.typ().is_none_or(is_access_token) {
            return Err(TokenError::NotAccessToken.into());
        }
        let id = token.key_id().map(str::to_owned);
        let keys = keys
            .keys_for(id.as_deref(), &self.name, fetch, clock)
            .await?;
        let candidates = keys.candidates(id.as_deref(), token.algorithm());
        token
            .verify(candidates)
            .ok_or(TokenError::InvalidSignature.into())
    }

    /// Returns the claims of a token from the introspection endpoint.
    pub(super) async fn introspect(
        &self,
        token: &str,
        fetch: &Arc<dyn Fetch>,
    ) -> Result<Map<String, Value>, VerifyError> {
        match &self.verification {
            VerificationMethod::Introspection(introspection) => {
                introspection.introspect(token, &self.name, &**fetch).await
            }
            VerificationMethod::Keys(_) => Err(TokenError::UnknownToken.into()),
        }
    }
}

/// Returns whether `typ` is allowed for an access token (RFC 9068, RFC 8725). Many issuers use the general `JWT`.
fn is_access_token(kind: &str) -> bool {
    let kinds = ["at+jwt", "application/at+jwt", "JWT"];
    kinds.iter().any(|known| known.eq_ignore_ascii_case(kind))
}

/// Shows no secret.
impl fmt::Debug for TrustedIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TrustedIssuer").field(&self.name).finish()
    }
}

/// The source of the keys.
pub(super) enum IssuerKeys {
    /// Configured keys, never refreshed.
    Static(Arc<Jwks>),
    /// Keys fetched from this URL, or from the one in the metadata of the issuer.
    Remote {
        jwks_uri: Option<String>,
        document: Arc<CachedDocument<Jwks>>,
    },
}

impl IssuerKeys {
    pub(super) fn remote(jwks_uri: Option<String>) -> Self {
        let document = CachedDocument::new();
        Self::Remote { jwks_uri, document }
    }

    /// Returns the keys, refreshed if none has this id.
    pub(super) async fn keys_for(
        &self,
        id: Option<&str>,
        issuer: &str,
        fetch: &Arc<dyn Fetch>,
        clock: &Clock,
    ) -> Result<Arc<Jwks>, VerifyError> {
        let (jwks_uri, document) = match self {
            Self::Static(keys) => return Ok(Arc::clone(keys)),
            Self::Remote { jwks_uri, document } => (jwks_uri, document),
        };
        let has = |keys: &Jwks| id.is_none_or(|id| keys.contains(id));
        let load = || {
            let (fetch, issuer, jwks_uri) =
                (Arc::clone(fetch), issuer.to_owned(), jwks_uri.clone());
            async move {
                let keys = load(&*fetch, &issuer, jwks_uri).await;
                keys.inspect_err(|reason| {
                    tracing::warn!(issuer, reason, "cannot fetch the keys of the issuer");
                })
                .ok()
            }
        };
        let keys = document.get(clock, has, load).await;
        keys.ok_or(VerifyError::Unreachable)
    }
}

async fn load(fetch: &dyn Fetch, issuer: &str, jwks_uri: Option<String>) -> Result<Jwks, String> {
    let url = match jwks_uri {
        Some(url) => url,
        None => {
            let (_, metadata) = fetch_issuer_metadata(fetch, issuer).await?;
            metadata
                .jwks_uri
                .ok_or("the metadata of the issuer has no `jwks_uri`")?
        }
    };
    let keys = fetch_document(fetch, &url).await?;
    Jwks::parse(&keys).map_err(|error| format!("{url}: {error}"))
}

/// Maximum number of concurrent introspection requests.
const MAX_CONCURRENT_REQUESTS: usize = 32;

/// Client of an introspection endpoint (RFC 7662).
pub(super) struct IntrospectionClient {
    endpoint: String,
    /// The `Authorization` header of the introspection requests.
    authorization: Secret,
    permits: Semaphore,
}

impl IntrospectionClient {
    pub(super) fn new(endpoint: String, client: &str, password: &Secret) -> Self {
        Self {
            endpoint,
            authorization: basic_auth_header(client, password),
            permits: Semaphore::new(MAX_CONCURRENT_REQUESTS),
        }
    }

    /// Returns the claims of an active token.
    pub(super) async fn introspect(
        &self,
        token: &str,
        issuer: &str,
        fetch: &dyn Fetch,
    ) -> Result<Map<String, Value>, VerifyError> {
        let form = Form::default()
            .with("token", token)
            .with("token_type_hint", "access_token");
        let request = FetchRequest::post(&self.endpoint, FORM_CONTENT_TYPE, form.into_string())
            .header("authorization", self.authorization.expose());
        let response = {
            let _permit = self.permits.acquire().await;
            fetch.fetch(request).await
        };
        let unreachable = |reason: &str| {
            tracing::warn!(issuer, reason, "introspection failed");
            VerifyError::Unreachable
        };
        let body = match response {
            Ok(response) if response.status == 200 => response.body,
            Ok(response) => return Err(unreachable(&format!("status {}", response.status))),
            Err(error) => return Err(unreachable(&error.to_string())),
        };
        let claims: Map<String, Value> =
            json::from_slice(&body).map_err(|error| unreachable(&error.to_string()))?;
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(TokenError::Inactive.into());
        }
        match claims.get("iss") {
            Some(own) if own != issuer => Err(TokenError::UnknownIssuer.into()),
            _ => Ok(claims),
        }
    }
}
