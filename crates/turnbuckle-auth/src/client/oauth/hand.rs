//! The login that is in use.

use std::{
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

use crate::{
    Credentials, Failure, Secret, Sending, Step,
    client::{store::Login, token::TokenKind},
    dpop::Prover,
    jwt::{InvalidKey, SigningKey},
};

/// What every request reads, and each renewal replaces.
#[derive(Default)]
pub(super) struct Hand {
    held: RwLock<Held>,
    /// What the server wants in the next proof.
    pub(super) nonce: Nonce,
    /// What the authorization server wants in the next proof: each has its own.
    pub(super) issuer_nonce: Nonce,
}

/// The login that is in use, and where it came from.
#[derive(Clone, Default)]
pub(super) struct Held {
    /// Another number, other credentials.
    pub(super) generation: u64,
    pub(super) login: Option<Arc<Login>>,
    prover: Option<Prover>,
    came: Option<(Came, Instant)>,
}

/// Where a login came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    FromStore,
    ByRefresh,
    ByLogin,
}

/// What a server wants in the next proof.
#[derive(Default)]
pub(super) struct Nonce(RwLock<Option<String>>);

impl Hand {
    /// Returns what is in use at this moment.
    pub(super) fn held(&self) -> Held {
        self.read().clone()
    }

    pub(super) fn generation(&self) -> u64 {
        self.read().generation
    }

    /// Uses a login from now on.
    pub(super) fn hold(&self, login: Login, came: Came) -> Result<Arc<Login>, Failure> {
        let prover = prover(&login)?;
        let login = Arc::new(login);
        let mut held = self.write();
        *held = Held {
            generation: held.generation + 1,
            login: Some(Arc::clone(&login)),
            prover,
            came: Some((came, Instant::now())),
        };
        Ok(login)
    }

    /// Uses none from now on.
    pub(super) fn let_go(&self) {
        let mut held = self.write();
        *held = Held {
            generation: held.generation + 1,
            ..Held::default()
        };
    }

    /// Returns what goes along with a request; nothing if there is no login.
    pub(super) fn credentials(&self, sending: Sending<'_>) -> Result<Credentials, Failure> {
        let held = self.held();
        let Some(login) = &held.login else {
            return Ok(Credentials::new(held.generation, Vec::new()));
        };
        let token = &login.tokens.access;
        let headers = match (login.tokens.kind, &held.prover) {
            (TokenKind::Dpop, Some(prover)) => {
                let nonce = self.nonce.get();
                let proof = prover
                    .proof(sending.method, sending.url, Some(token), nonce.as_deref())
                    .map_err(|error| Failure::new(Step::Use, error.to_string()))?;
                vec![
                    ("authorization", authorization("DPoP", token)),
                    ("dpop", Secret::new(proof)),
                ]
            }
            _ => vec![("authorization", authorization("Bearer", token))],
        };
        Ok(Credentials::new(held.generation, headers))
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Whether the token came in this way a moment ago, and cannot have ended since.
    pub(super) fn is_new(&self, of: Came) -> bool {
        const MOMENT: Duration = Duration::from_secs(60);
        let is_new = |(came, at): (Came, Instant)| came == of && at.elapsed() < MOMENT;
        self.came.is_some_and(is_new) && !self.is_over()
    }

    /// Whether the token ends so soon that a request might come too late with it.
    pub(super) fn is_ending(&self) -> bool {
        const MARGIN: u64 = 60;
        self.login.as_ref().is_some_and(|login| {
            // Of a token that lives for a minute, the margin must not be its whole life.
            let life = |expires: u64| expires.saturating_sub(login.obtained);
            let is_ending = |expires| now() + MARGIN.min(life(expires) / 10) >= expires;
            login.tokens.expires.is_some_and(is_ending)
        })
    }

    /// Whether the token has ended.
    pub(super) fn is_over(&self) -> bool {
        let expires = self.login.as_ref().and_then(|login| login.tokens.expires);
        expires.is_some_and(|expires| expires <= now())
    }

    /// Whether there is something to refresh the token with.
    pub(super) fn can_be_refreshed(&self) -> bool {
        let login = self.login.as_ref();
        login.is_some_and(|login| login.tokens.refresh.is_some())
    }

    /// Whether the token is bound to a key, and every request needs a proof.
    pub(super) fn is_bound(&self) -> bool {
        let login = self.login.as_ref();
        login.is_some_and(|login| login.tokens.kind == TokenKind::Dpop)
    }

    /// Whether the tokens of a login are in use.
    pub(super) fn is(&self, login: &Login) -> bool {
        let ours = self.login.as_ref();
        ours.is_some_and(|ours| ours.tokens.access.is_same(&login.tokens.access))
    }
}

impl Nonce {
    pub(super) fn get(&self) -> Option<String> {
        let nonce = self.0.read().unwrap_or_else(PoisonError::into_inner);
        nonce.clone()
    }

    pub(super) fn set(&self, nonce: &str) {
        // What RFC 9449 lets a nonce be, and not without end.
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if (1..=1024).contains(&nonce.len()) && nonce.bytes().all(is_allowed) {
            let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
            *kept = Some(nonce.to_owned());
        }
    }
}

/// Returns what proves that we hold the key of a login, if it has one.
pub(super) fn prover(login: &Login) -> Result<Option<Prover>, Failure> {
    let unreadable = |error: InvalidKey| {
        Failure::new(Step::Store, error.to_string()).cure("log out, and log in again")
    };
    match &login.dpop_key {
        Some(key) => {
            let key = SigningKey::from_secret(key).map_err(unreadable)?;
            Ok(Some(Prover::new(key)))
        }
        None => Ok(None),
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

fn authorization(scheme: &str, token: &Secret) -> Secret {
    Secret::new(format!("{scheme} {}", token.expose()))
}
