//! Authentication of a request: from its headers to its principal.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};
use turnbuckle_protocol::{
    Principal,
    authenticator::{AuthRejection, AuthRequest, Authenticator, BoxFuture, MetadataDocument},
};
use turnbuckle_text::url::HttpUrl;

use super::{
    DpopPolicy, ResourceServer, TrustedIssuer,
    claims::VerifiedToken,
    rejection::{TokenError, VerifyError},
    token_cache::digest,
};
use crate::{
    Secret,
    dpop::ExpectedProof,
    jwt::{InvalidJwt, UnverifiedJwt},
};

impl Authenticator for ResourceServer {
    fn authenticate<'a>(
        &'a self,
        request: AuthRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
        Box::pin(self.authenticate_request(request))
    }

    fn insufficient_scope(&self, caller: &Principal, needed: &BTreeSet<String>) -> AuthRejection {
        self.insufficient_scope(caller, needed)
    }

    fn metadata_document<'a>(&'a self, path: &'a str) -> Option<BoxFuture<'a, MetadataDocument>> {
        self.metadata_document_at(path)
    }

    fn exchangeable_token<'a>(&self, request: AuthRequest<'a>, _: &Principal) -> Option<&'a str> {
        if !self.allows_token_exchange {
            return None;
        }
        let credentials = AuthorizationHeader::parse(request.authorization).ok()??;
        let is_issued = credentials.scheme == TokenScheme::Bearer
            && self.find_static_token(credentials.token).is_none();
        is_issued.then_some(credentials.token)
    }
}

impl ResourceServer {
    async fn authenticate_request(
        &self,
        request: AuthRequest<'_>,
    ) -> Result<Arc<Principal>, AuthRejection> {
        let credentials = match AuthorizationHeader::parse(request.authorization) {
            Ok(Some(credentials)) => credentials,
            Ok(None) => return Err(self.missing_token()),
            Err(_) => return Err(self.malformed_header()),
        };
        if credentials.scheme == TokenScheme::Dpop && self.dpop == DpopPolicy::Reject {
            return Err(self.missing_token());
        }
        let verified = self.verify(credentials.token).await;
        let verified =
            verified.map_err(|error| self.verification_failed(&error, credentials.scheme))?;
        self.check_binding(&verified, credentials, request)?;
        let has = |scope: &str| verified.principal.scopes.contains(scope);
        if self.required_scopes.iter().all(has) {
            Ok(verified.principal)
        } else {
            Err(self.insufficient_scope(&verified.principal, &BTreeSet::new()))
        }
    }

    /// Checks that a bound token comes with a proof, and an unbound token without one.
    fn check_binding(
        &self,
        verified: &VerifiedToken,
        credentials: AuthorizationHeader<'_>,
        request: AuthRequest<'_>,
    ) -> Result<(), AuthRejection> {
        let error = match (&verified.key, credentials.scheme) {
            (Some(key), TokenScheme::Dpop) => return self.check_proof(key, credentials, request),
            (None, TokenScheme::Bearer) if self.dpop != DpopPolicy::Require => return Ok(()),
            (None, TokenScheme::Bearer) => TokenError::MustBeBound,
            (None, TokenScheme::Dpop) => TokenError::NotBound,
            (Some(_), TokenScheme::Bearer) if self.dpop == DpopPolicy::Reject => {
                TokenError::UnsupportedBinding
            }
            (Some(_), TokenScheme::Bearer) => TokenError::RequiresDpop,
        };
        Err(self.invalid_token(&error, credentials.scheme))
    }

    fn check_proof(
        &self,
        key: &str,
        credentials: AuthorizationHeader<'_>,
        request: AuthRequest<'_>,
    ) -> Result<(), AuthRejection> {
        let origin = HttpUrl::parse(&self.resource).map_or("", |url| url.origin);
        // Behind a proxy that rewrites paths, clients know only the URL of the resource.
        let here = format!("{origin}{}", request.path);
        let expected = ExpectedProof {
            method: request.method,
            urls: &[&here, &self.resource],
            token: credentials.token,
            key,
        };
        let verified = self
            .proof_verifier
            .verify(request.dpop, expected, self.clock.time());
        verified.map_err(|error| self.invalid_proof(&error))
    }
}

/// Time for which a verified signature is cached, in seconds. A revoked key is accepted no longer than this.
const SIGNATURE_CACHE_SECONDS: u64 = 5 * 60;
/// Time for which an introspection result is cached, in seconds.
const INTROSPECTION_CACHE_SECONDS: u64 = 60;
/// Time for which a rejection is cached, in seconds.
const REJECTION_CACHE_SECONDS: u64 = 10;

impl ResourceServer {
    /// Verifies a token; in most cases from the cache.
    pub(super) async fn verify(&self, token: &str) -> Result<VerifiedToken, VerifyError> {
        if token.len() > UnverifiedJwt::MAX_BYTES {
            return Err(TokenError::TooLong.into());
        }
        if let Some(verified) = self.find_static_token(token) {
            return Ok(verified);
        }
        let (digest, now) = (digest(token), self.clock.now());
        if let Some(verified) = self.verified.get(&digest, now) {
            return Ok(verified);
        }
        if let Some(error) = self.rejected.get(&digest, now) {
            return Err(error.into());
        }
        let outcome = match UnverifiedJwt::parse(token) {
            Ok(signed) => self.verify_jwt(signed, token).await,
            Err(error) => self.verify_opaque(token, error).await,
        };
        match &outcome {
            Ok(verified) => self
                .verified
                .insert(digest, verified.expires_at, verified.clone()),
            Err(VerifyError::Invalid(error)) => {
                self.rejected
                    .insert(digest, now + REJECTION_CACHE_SECONDS, error.clone());
            }
            Err(VerifyError::Unreachable) => {}
        }
        outcome
    }

    /// Finds a static token. All of them are compared, to take the same time for each.
    fn find_static_token(&self, token: &str) -> Option<VerifiedToken> {
        if self.static_tokens.is_empty() {
            return None;
        }
        let token = Secret::new(token);
        let found = self
            .static_tokens
            .iter()
            .fold(None, |found, (own, principal)| {
                if own.constant_time_eq(&token) {
                    Some(principal)
                } else {
                    found
                }
            });
        found.map(|principal| VerifiedToken {
            principal: Arc::clone(principal),
            key: None,
            expires_at: u64::MAX,
        })
    }

    /// Verifies a signed token with the issuer that it names. No request is sent if that issuer is not trusted.
    async fn verify_jwt(
        &self,
        token: UnverifiedJwt<'_>,
        text: &str,
    ) -> Result<VerifiedToken, VerifyError> {
        let named = token.unverified_claim("iss").and_then(Value::as_str);
        let mut issuers = self.issuers.iter();
        let issuer = issuers.find(|issuer| Some(issuer.name()) == named);
        let issuer = issuer.ok_or(TokenError::UnknownIssuer)?;
        if issuer.uses_introspection() {
            return self.check_claims(
                issuer,
                issuer.introspect(text, &self.fetch).await?,
                INTROSPECTION_CACHE_SECONDS,
            );
        }
        let claims = issuer.verify(token, &self.algorithms, &self.fetch, &self.clock);
        self.check_claims(issuer, claims.await?, SIGNATURE_CACHE_SECONDS)
    }

    /// Verifies an opaque token. Its issuer is unknown, so all issuers with introspection are tried in order.
    async fn verify_opaque(
        &self,
        text: &str,
        error: InvalidJwt,
    ) -> Result<VerifiedToken, VerifyError> {
        let error = if self.issuers.is_empty() {
            TokenError::UnknownToken
        } else {
            TokenError::Malformed(error)
        };
        let mut why = VerifyError::Invalid(error);
        for issuer in self
            .issuers
            .iter()
            .filter(|issuer| issuer.uses_introspection())
        {
            let claims = issuer.introspect(text, &self.fetch).await;
            match claims
                .and_then(|claims| self.check_claims(issuer, claims, INTROSPECTION_CACHE_SECONDS))
            {
                Ok(verified) => return Ok(verified),
                // The token is invalid only if no issuer was unreachable.
                Err(_) if matches!(why, VerifyError::Unreachable) => {}
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    fn check_claims(
        &self,
        issuer: &TrustedIssuer,
        claims: Map<String, Value>,
        lifetime: u64,
    ) -> Result<VerifiedToken, VerifyError> {
        let now = self.clock.now();
        let verified = self.policy.check(issuer.name(), claims, now)?;
        let expires_at = verified.expires_at.min(now + lifetime);
        Ok(VerifiedToken {
            expires_at,
            ..verified
        })
    }
}

/// The authentication scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenScheme {
    Bearer,
    Dpop,
}

/// An access token and its scheme.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct AuthorizationHeader<'a> {
    pub(super) scheme: TokenScheme,
    pub(super) token: &'a str,
}

/// The header is missing a token, ambiguous or repeated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MalformedHeader;

impl<'a> AuthorizationHeader<'a> {
    /// Parses the header. Returns `None` if there is none, or if the scheme is not `Bearer` or `DPoP`.
    pub(super) fn parse(headers: &[&'a str]) -> Result<Option<Self>, MalformedHeader> {
        let header = match headers {
            [] => return Ok(None),
            [header] => header.trim_matches([' ', '\t']),
            _ => return Err(MalformedHeader),
        };
        let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
        let scheme = match scheme {
            "" => return Err(MalformedHeader),
            scheme if scheme.eq_ignore_ascii_case("Bearer") => TokenScheme::Bearer,
            scheme if scheme.eq_ignore_ascii_case("DPoP") => TokenScheme::Dpop,
            _ => return Ok(None),
        };
        let token = token.trim_start_matches(' ');
        if is_token(token) {
            Ok(Some(Self { scheme, token }))
        } else {
            Err(MalformedHeader)
        }
    }
}

/// Returns whether the text has the syntax of a token (`b64token`, RFC 6750).
fn is_token(text: &str) -> bool {
    let letters = text.trim_end_matches('=');
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !letters.is_empty() && letters.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_read_in_any_case() {
        for (header, scheme) in [
            ("Bearer a.b-c", TokenScheme::Bearer),
            ("bearer a.b-c", TokenScheme::Bearer),
            ("BEARER   a.b-c ", TokenScheme::Bearer),
            ("dpop a.b-c", TokenScheme::Dpop),
        ] {
            let credentials = AuthorizationHeader::parse(&[header]).unwrap().unwrap();
            assert!(
                credentials
                    == AuthorizationHeader {
                        scheme,
                        token: "a.b-c"
                    },
                "{header}"
            );
        }
    }

    #[test]
    fn ambiguous_headers_are_malformed() {
        for headers in [
            &["Bearer a", "Bearer a"][..],
            &["Bearer a", "Basic b"],
            &[""],
            &["Bearer"],
            &["Bearer "],
            &["Bearer ="],
            &["Bearer a b"],
            &["Bearer a,b"],
            &["Bearer a, Bearer b"],
            &["Bearer \"a\""],
            &["Bearer \u{e4}"],
            &["Bearer a\0"],
            &["Bearer token=\"a\""],
        ] {
            assert!(
                AuthorizationHeader::parse(headers) == Err(MalformedHeader),
                "{headers:?}"
            );
        }
    }

    #[test]
    fn another_scheme_is_a_missing_token() {
        for headers in [&[][..], &["Basic YTpi"], &["Bearerx a"], &["Negotiate"]] {
            assert!(
                AuthorizationHeader::parse(headers) == Ok(None),
                "{headers:?}"
            );
        }
    }
}
