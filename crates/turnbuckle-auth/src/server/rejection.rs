//! Rejections of requests: status, challenge and error description.

use std::collections::BTreeSet;

use turnbuckle_protocol::{Principal, authenticator::AuthRejection};

use super::{DpopPolicy, ResourceServer, authenticate::TokenScheme};
use crate::{Challenge, Scopes, dpop::InvalidProof, jwt::InvalidJwt};

impl ResourceServer {
    /// Rejects a request without a token.
    pub(super) fn missing_token(&self) -> AuthRejection {
        let challenge = self
            .challenge(self.preferred_scheme())
            .scope(&without_offline_access(&self.required_scopes));
        AuthRejection::new(401, "an access token is required").challenge(challenge)
    }

    /// Rejects a malformed `Authorization` header.
    pub(super) fn malformed_header(&self) -> AuthRejection {
        let message = "expected exactly one Authorization header with a scheme and a token";
        let challenge = self.challenge(self.preferred_scheme());
        AuthRejection::new(400, message).challenge(challenge.error("invalid_request", message))
    }

    /// Rejects a token that is invalid or cannot be verified.
    pub(super) fn verification_failed(
        &self,
        error: &VerifyError,
        sent_as: TokenScheme,
    ) -> AuthRejection {
        match error {
            VerifyError::Invalid(error) => self.invalid_token(error, sent_as),
            VerifyError::Unreachable => {
                AuthRejection::new(503, "tokens cannot be verified at the moment")
            }
        }
    }

    pub(super) fn invalid_token(&self, error: &TokenError, sent_as: TokenScheme) -> AuthRejection {
        let message = error.to_string();
        let scheme = match error {
            TokenError::RequiresDpop | TokenError::MustBeBound => TokenScheme::Dpop,
            TokenError::NotBound => self.preferred_scheme(),
            _ => sent_as,
        };
        let challenge = self.challenge(scheme).error("invalid_token", &message);
        AuthRejection::new(401, message)
            .challenge(challenge.scope(&without_offline_access(&self.required_scopes)))
    }

    /// Rejects a request with a valid token and an invalid proof.
    pub(super) fn invalid_proof(&self, error: &InvalidProof) -> AuthRejection {
        let message = error.to_string();
        let (status, code) = match error {
            InvalidProof::TooManyProofs => return AuthRejection::new(503, message),
            InvalidProof::KeyMismatch => (401, "invalid_token"),
            InvalidProof::Nonce => (401, "use_dpop_nonce"),
            _ => (401, "invalid_dpop_proof"),
        };
        let challenge = self.challenge(TokenScheme::Dpop).error(code, &message);
        let rejection = AuthRejection::new(status, message).challenge(challenge);
        match self.proof_verifier.issue_nonce(self.clock.time()) {
            Some(nonce) => rejection.nonce(nonce),
            None => rejection,
        }
    }

    /// Rejects a token with too few scopes; the challenge names all required scopes.
    pub(super) fn insufficient_scope(
        &self,
        caller: &Principal,
        needed: &BTreeSet<String>,
    ) -> AuthRejection {
        let needed: Scopes = needed.iter().cloned().collect();
        let needed = without_offline_access(&needed.union(&self.required_scopes));
        let scheme = if caller.claims.contains_key("cnf") {
            TokenScheme::Dpop
        } else {
            TokenScheme::Bearer
        };
        let message = "the token has too few scopes for this request";
        let challenge = self.challenge(scheme).error("insufficient_scope", message);
        AuthRejection::new(403, message).challenge(challenge.scope(&needed))
    }

    fn challenge(&self, scheme: TokenScheme) -> Challenge {
        let challenge = match scheme {
            TokenScheme::Bearer => Challenge::bearer(),
            TokenScheme::Dpop => {
                Challenge::dpop().with_parameter("algs", &self.proof_verifier.algorithm_names())
            }
        };
        match self.metadata_url() {
            Some(url) => challenge.resource_metadata(&url),
            None => challenge,
        }
    }

    fn preferred_scheme(&self) -> TokenScheme {
        match self.dpop {
            DpopPolicy::Require => TokenScheme::Dpop,
            DpopPolicy::Accept | DpopPolicy::Reject => TokenScheme::Bearer,
        }
    }
}

/// Removes `offline_access`, which concerns only the client and its authorization server.
pub(super) fn without_offline_access(scopes: &Scopes) -> Scopes {
    let names = scopes.iter().filter(|name| *name != "offline_access");
    names.map(str::to_owned).collect()
}

/// Reason why a token is invalid. Reveals nothing that the client could not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("the token is too long")]
    TooLong,
    #[error("the token is unknown")]
    UnknownToken,
    #[error(transparent)]
    Malformed(InvalidJwt),
    #[error("the signature algorithm of the token is not accepted")]
    UnsupportedAlgorithm,
    #[error("the token is not an access token")]
    NotAccessToken,
    #[error("the token is not signed by its issuer")]
    InvalidSignature,
    #[error("the token is from another issuer")]
    UnknownIssuer,
    #[error("the token is for another audience")]
    WrongAudience,
    #[error("the token has expired")]
    Expired,
    #[error("the token lacks an expiry time")]
    NoExpiry,
    #[error("the token is not valid yet")]
    NotYetValid,
    #[error("the token lacks a subject")]
    NoSubject,
    #[error("the binding of the token is not supported")]
    UnsupportedBinding,
    #[error("the token is not active")]
    Inactive,
    #[error("the token is bound to a key: send it with the DPoP scheme")]
    RequiresDpop,
    #[error("the token is not bound to a key: send it with the Bearer scheme")]
    NotBound,
    #[error("the token must be bound to a key")]
    MustBeBound,
}

/// Reason why a token was not accepted.
#[derive(Debug)]
pub(super) enum VerifyError {
    /// The token is invalid.
    Invalid(TokenError),
    /// The issuer could not be reached, so that the result is unknown.
    Unreachable,
}

impl From<TokenError> for VerifyError {
    fn from(error: TokenError) -> Self {
        Self::Invalid(error)
    }
}
