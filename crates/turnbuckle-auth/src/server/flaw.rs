//! What is wrong with a token.

use crate::jwt::InvalidToken;

/// Why a token lets nobody in. Tells nothing that its bearer could not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    #[error("the token is too long")]
    TooLong,
    #[error("the token is not known here")]
    Unknown,
    #[error(transparent)]
    Form(InvalidToken),
    #[error("the token is signed in a way that is not accepted")]
    Algorithm,
    #[error("the token is no access token")]
    Kind,
    #[error("the token is not signed by its issuer")]
    Signature,
    #[error("the token is of another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token has expired")]
    Expired,
    #[error("the token does not say when it expires")]
    Endless,
    #[error("the token is not valid yet")]
    Early,
    #[error("the token does not say whose it is")]
    Nobody,
    #[error("the token is bound in a way that cannot be checked")]
    Binding,
    #[error("the token is not active")]
    Inactive,
    #[error("the token is bound to a key: send it with the scheme DPoP")]
    Bound,
    #[error("the token is not bound to a key: DPoP does not go with it")]
    Unbound,
    #[error("the token must be bound to a key")]
    MustBeBound,
}

/// Why a token could not be verified.
#[derive(Debug)]
pub(super) enum NotVerified {
    /// It is not valid.
    Flaw(Flaw),
    /// Nobody knows: the issuer cannot be asked.
    Unreachable,
}

impl From<Flaw> for NotVerified {
    fn from(flaw: Flaw) -> Self {
        Self::Flaw(flaw)
    }
}
