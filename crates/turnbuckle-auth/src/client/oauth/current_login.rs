//! The login in use.

use std::{
    sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    AuthorizationError, AuthorizationStep, Credentials, Secret, UnsignedRequest,
    client::{store::StoredLogin, token::TokenKind},
    dpop::DpopProver,
    jwt::{InvalidSigningKey, SigningKey},
    sync::{read, write},
    unix_time::now,
};

/// Holds the current login: every request reads it, each renewal replaces it.
#[derive(Default)]
pub(super) struct LoginSlot {
    current: RwLock<CurrentLogin>,
    /// The nonce that the MCP server requires in the next proof.
    pub(super) nonce: DpopNonce,
    /// The nonce that the authorization server requires in the next proof.
    pub(super) issuer_nonce: DpopNonce,
}

/// The current login and its origin.
#[derive(Clone, Default)]
pub(super) struct CurrentLogin {
    /// Changes with the credentials.
    pub(super) generation: u64,
    pub(super) login: Option<Arc<StoredLogin>>,
    prover: Option<DpopProver>,
    origin: Option<(LoginOrigin, Instant)>,
}

/// Origin of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoginOrigin {
    Store,
    Refresh,
    Login,
}

/// The nonce that a server requires in the next proof.
#[derive(Default)]
pub(super) struct DpopNonce(RwLock<Option<String>>);

impl LoginSlot {
    /// Returns the current login.
    pub(super) fn current(&self) -> CurrentLogin {
        self.read().clone()
    }

    pub(super) fn generation(&self) -> u64 {
        self.read().generation
    }

    /// Replaces the current login.
    pub(super) fn set(
        &self,
        login: StoredLogin,
        origin: LoginOrigin,
    ) -> Result<Arc<StoredLogin>, AuthorizationError> {
        let prover = prover(&login)?;
        let login = Arc::new(login);
        let mut current = self.write();
        *current = CurrentLogin {
            generation: current.generation + 1,
            login: Some(Arc::clone(&login)),
            prover,
            origin: Some((origin, Instant::now())),
        };
        Ok(login)
    }

    /// Removes the current login.
    pub(super) fn clear(&self) {
        let mut current = self.write();
        *current = CurrentLogin {
            generation: current.generation + 1,
            ..CurrentLogin::default()
        };
    }

    /// Returns the headers for a request; none without a login.
    pub(super) fn credentials(
        &self,
        request: UnsignedRequest<'_>,
    ) -> Result<Credentials, AuthorizationError> {
        let current = self.current();
        let Some(login) = &current.login else {
            return Ok(Credentials::new(current.generation, Vec::new()));
        };
        let token = &login.tokens.access;
        let headers = match (login.tokens.kind, &current.prover) {
            (TokenKind::Dpop, Some(prover)) => {
                let nonce = self.nonce.get();
                let proof = prover
                    .proof(request.method, request.url, Some(token), nonce.as_deref())
                    .map_err(|error| {
                        AuthorizationError::new(AuthorizationStep::Use, error.to_string())
                    })?;
                vec![
                    ("authorization", authorization("DPoP", token)),
                    ("dpop", Secret::new(proof)),
                ]
            }
            _ => vec![("authorization", authorization("Bearer", token))],
        };
        Ok(Credentials::new(current.generation, headers))
    }

    fn read(&self) -> RwLockReadGuard<'_, CurrentLogin> {
        read(&self.current)
    }

    fn write(&self) -> RwLockWriteGuard<'_, CurrentLogin> {
        write(&self.current)
    }
}

impl CurrentLogin {
    /// Returns whether the token was obtained this way within the last minute and has not expired.
    pub(super) fn was_obtained_recently(&self, of: LoginOrigin) -> bool {
        const RECENT: Duration = Duration::from_secs(60);
        let is_new = |(origin, at): (LoginOrigin, Instant)| origin == of && at.elapsed() < RECENT;
        self.origin.is_some_and(is_new) && !self.has_expired()
    }

    /// Returns whether the token may expire before a request arrives.
    pub(super) fn expires_soon(&self) -> bool {
        const MARGIN_SECONDS: u64 = 60;
        self.login.as_ref().is_some_and(|login| {
            // For short-lived tokens, the margin is a tenth of the lifetime.
            let lifetime = |expires: u64| expires.saturating_sub(login.obtained);
            let expires_soon =
                |expires| now() + MARGIN_SECONDS.min(lifetime(expires) / 10) >= expires;
            login.tokens.expires.is_some_and(expires_soon)
        })
    }

    /// Returns whether the token has expired.
    pub(super) fn has_expired(&self) -> bool {
        let expires = self.login.as_ref().and_then(|login| login.tokens.expires);
        expires.is_some_and(|expires| expires <= now())
    }

    /// Returns whether there is a refresh token.
    pub(super) fn has_refresh_token(&self) -> bool {
        let login = self.login.as_ref();
        login.is_some_and(|login| login.tokens.refresh.is_some())
    }

    /// Returns whether the token is bound to a key, so that every request needs a proof.
    pub(super) fn is_bound(&self) -> bool {
        let login = self.login.as_ref();
        login.is_some_and(|login| login.tokens.kind == TokenKind::Dpop)
    }

    /// Returns whether the login has the same access token.
    pub(super) fn uses(&self, login: &StoredLogin) -> bool {
        let ours = self.login.as_ref();
        ours.is_some_and(|ours| ours.tokens.access.constant_time_eq(&login.tokens.access))
    }
}

impl DpopNonce {
    pub(super) fn get(&self) -> Option<String> {
        let nonce = read(&self.0);
        nonce.clone()
    }

    pub(super) fn set(&self, nonce: &str) {
        // The syntax of RFC 9449, with a length limit.
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if (1..=1024).contains(&nonce.len()) && nonce.bytes().all(is_allowed) {
            let mut stored = write(&self.0);
            *stored = Some(nonce.to_owned());
        }
    }
}

/// Returns the prover for the key of a login, if it has one.
pub(super) fn prover(login: &StoredLogin) -> Result<Option<DpopProver>, AuthorizationError> {
    let unreadable = |error: InvalidSigningKey| {
        AuthorizationError::new(AuthorizationStep::Store, error.to_string())
            .with_hint("log out, and log in again")
    };
    match &login.dpop_key {
        Some(key) => {
            let key = SigningKey::from_secret(key).map_err(unreadable)?;
            Ok(Some(DpopProver::new(key)))
        }
        None => Ok(None),
    }
}

fn authorization(scheme: &str, token: &Secret) -> Secret {
    Secret::new(format!("{scheme} {}", token.expose()))
}
