//! Logins of several users of a program at one server: each has an account of its own there.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use turnbuckle_protocol::authenticator::BoxFuture;

use super::{
    OAuth, PendingLogin,
    registration::ClientRegistration,
    store::{StoreLock, StoredLogin, TokenStore},
};
use crate::{
    AuthorizationError, Challenge, CredentialProvider, Credentials, RetryDecision,
    UnauthorizedResponse, UnsignedRequest, sync::lock,
};

/// Maximum number of users with logins in memory. Others are loaded from the store again.
const MAX_USERS: usize = 1_024;

/// The logins of the users of a program at one server.
///
/// A login is refreshed as by [`OAuth`]. If a user has to log in, requests fail; the program lets the user log in with
/// [`UserCredentials::begin_login`]. No login is ever used for another user. Clones share the logins.
#[derive(Clone)]
pub struct UserLogins {
    client: OAuth,
    users: Arc<Mutex<HashMap<Arc<str>, UserSlot>>>,
}

struct UserSlot {
    credentials: UserCredentials,
    used: Instant,
}

impl UserLogins {
    /// Uses the settings of `client` for all users. Its store gets their logins; it should be one without a user agent.
    pub fn new(client: OAuth) -> Self {
        Self {
            client,
            users: Arc::default(),
        }
    }

    /// Returns the credentials of a user. `key` identifies the user; the store gets only a digest of it.
    pub fn user(&self, key: &str) -> UserCredentials {
        let mut users = lock(&self.users);
        let used = Instant::now();
        if let Some(slot) = users.get_mut(key) {
            slot.used = used;
            return slot.credentials.clone();
        }
        if users.len() >= MAX_USERS {
            let oldest = users.iter().min_by_key(|(_, slot)| slot.used);
            if let Some(oldest) = oldest.map(|(key, _)| Arc::clone(key)) {
                users.remove(&oldest);
            }
        }
        let credentials = UserCredentials {
            client: self.client.for_user(key),
            challenges: Arc::default(),
        };
        let slot = UserSlot {
            credentials: credentials.clone(),
            used,
        };
        users.insert(key.into(), slot);
        credentials
    }
}

impl fmt::Debug for UserLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

/// The credentials of one user of a [`UserLogins`].
#[derive(Clone, Debug)]
pub struct UserCredentials {
    client: OAuth,
    /// Those of the last response that could not be handled without the user.
    challenges: Arc<Mutex<Vec<Challenge>>>,
}

impl UserCredentials {
    /// Starts a login of the user, for the last response of the server that requires one. See [`OAuth::begin_login`].
    pub async fn begin_login(
        &self,
        callback_url: &str,
    ) -> Result<PendingLogin, AuthorizationError> {
        let challenges = lock(&self.challenges).clone();
        self.client.begin_login(&challenges, callback_url).await
    }

    /// Completes a login of the user. See [`OAuth::complete_login`].
    pub async fn complete_login(
        &self,
        login: PendingLogin,
        url_or_query: &str,
    ) -> Result<(), AuthorizationError> {
        self.client.complete_login(login, url_or_query).await?;
        lock(&self.challenges).clear();
        Ok(())
    }

    async fn renew(
        &self,
        response: UnauthorizedResponse<'_>,
    ) -> Result<RetryDecision, AuthorizationError> {
        let challenges = response.challenges.to_vec();
        let renewed = self.client.on_unauthorized(response).await;
        if !matches!(renewed, Ok(RetryDecision::Retry)) {
            *lock(&self.challenges) = challenges;
        }
        renewed
    }
}

impl CredentialProvider for UserCredentials {
    fn credentials<'a>(
        &'a self,
        request: UnsignedRequest<'a>,
    ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>> {
        self.client.credentials(request)
    }

    fn on_unauthorized<'a>(
        &'a self,
        response: UnauthorizedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>> {
        Box::pin(self.renew(response))
    }

    fn set_dpop_nonce(&self, nonce: &str) {
        self.client.set_dpop_nonce(nonce);
    }
}

/// What precedes the digest of a user in the key of a login.
const USER: &str = "#user=";

/// Splits the key of a stored login into the URL of the server and the digest of the user. Only logins of [`UserLogins`]
/// have one.
pub fn split_login_key(key: &str) -> (&str, Option<&str>) {
    match key.split_once(USER) {
        Some((url, user)) => (url, Some(user)),
        None => (key, None),
    }
}

/// The logins of one user in a store that all users share. Client registrations are those of the program.
pub(super) struct UserStore {
    store: Arc<dyn TokenStore>,
    suffix: String,
}

impl UserStore {
    pub(super) fn new(store: Arc<dyn TokenStore>, user: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(user).into();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            store,
            suffix: format!("{USER}{digest}"),
        }
    }

    /// Returns the key of a login: no request is sent to a URL with this fragment.
    fn key(&self, server_url: &str) -> String {
        format!("{server_url}{}", self.suffix)
    }
}

impl TokenStore for UserStore {
    fn login<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredLogin>, AuthorizationError>> {
        Box::pin(async move {
            let login = self.store.login(&self.key(server_url)).await?;
            Ok(login.map(|login| StoredLogin {
                server_url: server_url.to_owned(),
                ..login
            }))
        })
    }

    fn save<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        Box::pin(async move {
            let login = StoredLogin {
                server_url: self.key(&login.server_url),
                ..login.clone()
            };
            self.store.save(&login).await
        })
    }

    fn delete<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<bool, AuthorizationError>> {
        Box::pin(async move { self.store.delete(&self.key(server_url)).await })
    }

    fn registration<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClientRegistration>, AuthorizationError>> {
        self.store.registration(issuer)
    }

    fn save_registration<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<&'a ClientRegistration>,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        self.store.save_registration(issuer, client)
    }

    fn lock<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<StoreLock, AuthorizationError>> {
        Box::pin(async move { self.store.lock(&self.key(server_url)).await })
    }
}
