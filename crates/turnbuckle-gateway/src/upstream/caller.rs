//! The caller that a connection belongs to, with its newest token.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use turnbuckle_protocol::Principal;
use turnbuckle_server::{http::CallerToken, relay::RelayedRequest};

use crate::lock;

/// The authenticated caller that a connection belongs to. Clones share its newest token.
///
/// [`Upstream::per_caller`](crate::Upstream::per_caller) gets it, to connect with the credentials of the caller.
#[derive(Clone)]
pub struct UpstreamCaller {
    key: Arc<str>,
    principal: Arc<Principal>,
    token: Arc<Mutex<NewestToken>>,
}

struct NewestToken {
    token: Option<CallerToken>,
    expires_at: Option<u64>,
}

impl UpstreamCaller {
    /// Returns the caller of a request, if it is authenticated.
    pub(crate) fn of_request(request: &RelayedRequest) -> Option<Self> {
        let principal = request.principal()?;
        let Principal {
            issuer,
            subject,
            client,
            scopes,
            ..
        } = principal;
        Some(Self {
            key: format!("{:?}", (issuer, subject, client, scopes)).into(),
            principal: Arc::new(principal.clone()),
            token: Arc::new(Mutex::new(NewestToken {
                token: request.context().get::<CallerToken>().cloned(),
                expires_at: principal.expires_at,
            })),
        })
    }

    /// Returns the caller that all requests without authentication have.
    pub(crate) fn local_user() -> Self {
        Self {
            key: "local user".into(),
            principal: Arc::new(Principal::new("", "")),
            token: Arc::new(Mutex::new(NewestToken {
                token: None,
                expires_at: None,
            })),
        }
    }

    /// Returns whether both are the same user, perhaps with other clients or scopes.
    pub(super) fn is_same_user(&self, other: &Self) -> bool {
        let user = |caller: &Self| {
            let principal = &caller.principal;
            (principal.issuer.clone(), principal.subject.clone())
        };
        user(self) == user(other)
    }

    /// Identifies the caller and the scopes of its token. A token with fewer scopes must not give access to what was
    /// obtained with more.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// The principal, as of the request that opened the connection. Issuer and subject are empty for the
    /// [local user](crate::Upstream::local_user).
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns the newest token that the caller has sent, if the authenticator in front
    /// [allows its exchange](turnbuckle_protocol::authenticator::Authenticator::exchangeable_token).
    pub fn newest_token(&self) -> Option<CallerToken> {
        lock(&self.token).token.clone()
    }

    /// Takes over the token of a later request, unless it expires earlier.
    pub(super) fn renew(&self, later: &Self) {
        if Arc::ptr_eq(&self.token, &later.token) {
            return;
        }
        let mut later = lock(&later.token);
        let mut own = lock(&self.token);
        let is_newer = match (own.expires_at, later.expires_at) {
            (Some(own), Some(later)) => own <= later,
            _ => true,
        };
        if later.token.is_some() && (is_newer || own.token.is_none()) {
            own.token = later.token.take();
            own.expires_at = later.expires_at;
        }
    }
}

impl fmt::Debug for UpstreamCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamCaller")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
