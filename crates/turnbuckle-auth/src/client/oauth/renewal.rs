//! Renewal of credentials after a 401 or 403, with the least effort: a login of another process, a refresh, or a new
//! login.

use std::time::Duration;

use tokio::time;

use super::{
    OAuth,
    current_login::{self, LoginOrigin},
    login::{challenge_error, challenge_scopes},
    renewal_lock::{RenewalLock, run_to_completion},
};
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, Challenge, RetryDecision, Scopes,
    UnauthorizedResponse,
    client::{
        discovery::{self, DiscoveryResult},
        registration::{ClientRegistration, RegistrationSource},
        store::StoredLogin,
        token::{self, DpopBinding, TokenEndpoint},
    },
    is_same_resource,
    unix_time::now,
};

/// Maximum number of times one request is sent.
const MAX_SENDS: u32 = 5;

/// The requirement of the server that the renewal must meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RenewalGoal {
    /// A valid token.
    ValidToken,
    /// A token with these scopes.
    Scopes(Scopes),
    /// A proof with a new nonce.
    Nonce,
}

impl RenewalGoal {
    fn from_response(response: &UnauthorizedResponse<'_>, is_bound: bool) -> Option<RenewalGoal> {
        let required = challenge_scopes(response.challenges);
        match (response.status, challenge_error(response.challenges)) {
            (401, Some("use_dpop_nonce")) if is_bound => Some(RenewalGoal::Nonce),
            (401 | 403, Some("insufficient_scope")) => required.map(RenewalGoal::Scopes),
            (401, _) | (403, Some("invalid_token")) => Some(RenewalGoal::ValidToken),
            _ => None,
        }
    }

    /// Returns whether a login may satisfy the server.
    fn is_met_by(&self, login: &StoredLogin) -> bool {
        match self {
            RenewalGoal::Scopes(needed) => is_granted(login, needed),
            _ => true,
        }
    }
}

/// The parts of a 401 or 403 that the renewal uses.
pub(super) struct RenewalRequest {
    pub(super) challenges: Vec<Challenge>,
    pub(super) attempts: u32,
}

impl RenewalRequest {
    fn from_response(response: &UnauthorizedResponse<'_>) -> RenewalRequest {
        RenewalRequest {
            challenges: response.challenges.to_vec(),
            attempts: response.attempts,
        }
    }
}

impl OAuth {
    /// Obtains new credentials, if possible.
    ///
    /// A renewal runs to completion even if the request is cancelled. A refresh token can often be used only once, so
    /// its response must be stored; and a login that the user has started should not be wasted, since the next request
    /// needs it.
    pub(super) async fn renew(
        &self,
        response: UnauthorizedResponse<'_>,
    ) -> Result<RetryDecision, AuthorizationError> {
        let is_same_origin = self.settings.is_same_origin(response.request.url);
        let goal = RenewalGoal::from_response(&response, self.slot.current().is_bound());
        let Some(goal) = goal.filter(|_| is_same_origin && response.attempts < MAX_SENDS) else {
            return Ok(RetryDecision::GiveUp);
        };
        if goal == RenewalGoal::Nonce {
            return Ok(self.retry_with_nonce(&response));
        }
        let failure_count = self.renewals.failure_count();
        let lock = self.renewals.lock().await;
        if self.slot.generation() != response.generation {
            return Ok(RetryDecision::Retry);
        }
        // If the user denied access, the requests that waited for the same login do not prompt again.
        if let Some(failure) = self.renewals.failure_since(failure_count, &goal) {
            return Err(failure);
        }
        let (this, request) = (self.clone(), RenewalRequest::from_response(&response));
        run_to_completion(async move { this.renew_locked(request, goal, lock).await }).await
    }

    async fn renew_locked(
        &self,
        request: RenewalRequest,
        goal: RenewalGoal,
        lock: RenewalLock,
    ) -> Result<RetryDecision, AuthorizationError> {
        let decision = match self.settings.store.lock(&self.settings.server_url).await {
            Ok(store_lock) => {
                let lock = lock.with_store_lock(store_lock);
                self.renew_with_store_lock(&request, &goal, &lock).await
            }
            Err(failure) => Err(failure),
        };
        if let Err(failure) = &decision {
            self.renewals.record_failure(goal, failure);
        }
        decision
    }

    async fn renew_with_store_lock(
        &self,
        request: &RenewalRequest,
        goal: &RenewalGoal,
        lock: &RenewalLock,
    ) -> Result<RetryDecision, AuthorizationError> {
        let newest = self.newest().await?;
        if let Some(login) = newest.as_ref().filter(|it| !self.slot.current().uses(it)) {
            // Another process has renewed the login.
            self.slot.set(login.clone(), LoginOrigin::Store)?;
            if goal.is_met_by(login) {
                return Ok(RetryDecision::Retry);
            }
        }
        match (goal, newest) {
            (RenewalGoal::Scopes(needed), Some(login)) => {
                self.step_up(request, needed, &login, lock).await
            }
            (_, newest) => self.replace_token(request, newest.as_ref(), lock).await,
        }
    }

    /// Obtains the first token, or replaces an invalid one.
    async fn replace_token(
        &self,
        request: &RenewalRequest,
        newest: Option<&StoredLogin>,
        lock: &RenewalLock,
    ) -> Result<RetryDecision, AuthorizationError> {
        let discovery = self.discover(&request.challenges).await?;
        let challenged = challenge_scopes(&request.challenges);
        if let Some(login) = newest.filter(|login| matches_discovery(login, &discovery)) {
            let current = self.slot.current();
            let was_requested_before = challenged
                .as_ref()
                .is_none_or(|scopes| was_requested(login, scopes));
            if current.was_obtained_recently(LoginOrigin::Login) && was_requested_before {
                return Err(token_still_rejected(&discovery));
            }
            if login.tokens.refresh.is_some()
                && !current.was_obtained_recently(LoginOrigin::Refresh)
            {
                match self.refresh(login, &discovery.server, lock).await {
                    Ok(()) => return Ok(RetryDecision::Retry),
                    Err(failure) if !is_permanent(&failure) => return Err(failure),
                    Err(_) => {}
                }
            }
        }
        if self.settings.grant.needs_user() && !self.renewals.may_prompt_user() {
            return Err(too_many_prompts(&discovery));
        }
        self.log_in_at(&discovery, challenged.as_ref(), newest, lock)
            .await?;
        Ok(RetryDecision::Retry)
    }

    /// Retries with a new proof, if there is a nonce for it.
    fn retry_with_nonce(&self, response: &UnauthorizedResponse<'_>) -> RetryDecision {
        // A nonce may expire while the request is in flight, so a second one is accepted, but not more.
        const MAX_NONCE_ATTEMPTS: u32 = 3;
        if self.slot.nonce.get().is_some() && response.attempts <= MAX_NONCE_ATTEMPTS {
            RetryDecision::Retry
        } else {
            RetryDecision::GiveUp
        }
    }

    /// Returns the stored login, or the current one if it is newer and could not be stored.
    pub(super) async fn newest(&self) -> Result<Option<StoredLogin>, AuthorizationError> {
        let stored = self.stored_login().await?;
        let current = self.slot.current().login;
        Ok(match (stored, current) {
            (Some(stored), Some(current)) if stored.obtained < current.obtained => {
                Some((*current).clone())
            }
            // After a logout nothing is stored, and the current login must not be used.
            (stored, _) => stored,
        })
    }

    pub(super) async fn discover(
        &self,
        challenges: &[Challenge],
    ) -> Result<DiscoveryResult, AuthorizationError> {
        let settings = &self.settings;
        let (fetch, url) = (&*settings.fetch, &settings.server_url);
        discovery::discover(fetch, url, challenges, &settings.protocol_version).await
    }

    /// Requests the needed scopes together with all earlier ones, once for the same set.
    ///
    /// Gives up if the request cannot succeed.
    pub(super) async fn step_up(
        &self,
        request: &RenewalRequest,
        needed: &Scopes,
        login: &StoredLogin,
        lock: &RenewalLock,
    ) -> Result<RetryDecision, AuthorizationError> {
        if self.is_futile(request, needed, login) || !self.renewals.may_step_up(needed) {
            return Ok(RetryDecision::GiveUp);
        }
        if self.settings.grant.needs_user() && !self.renewals.may_prompt_user() {
            return Ok(RetryDecision::GiveUp);
        }
        let decision = self.request_more_scopes(request, needed, login, lock).await;
        if let Err(failure) = &decision
            && !matches!(
                failure.error_code(),
                Some("access_denied" | "invalid_scope")
            )
        {
            // Access was not denied, so it may be tried again.
            self.renewals.forget_step_up(needed);
        }
        decision
    }

    async fn request_more_scopes(
        &self,
        request: &RenewalRequest,
        needed: &Scopes,
        login: &StoredLogin,
        lock: &RenewalLock,
    ) -> Result<RetryDecision, AuthorizationError> {
        let discovery = self.discover(&request.challenges).await?;
        self.log_in_at(&discovery, Some(needed), Some(login), lock)
            .await?;
        Ok(RetryDecision::Retry)
    }

    fn is_futile(&self, request: &RenewalRequest, needed: &Scopes, login: &StoredLogin) -> bool {
        // The first 401 may have led to a login, and two more to additional scopes.
        const MAX_STEP_UP_ATTEMPTS: u32 = 3;
        let was_just_requested = self
            .slot
            .current()
            .was_obtained_recently(LoginOrigin::Login)
            && was_requested(login, needed);
        is_granted(login, needed) || was_just_requested || request.attempts > MAX_STEP_UP_ATTEMPTS
    }

    /// Loads the stored login once.
    pub(super) async fn load(&self) -> Result<(), AuthorizationError> {
        let load = async || {
            if let Some(login) = self.stored_login().await? {
                self.slot.set(login, LoginOrigin::Store)?;
            }
            Ok(())
        };
        self.renewals.loaded.get_or_try_init(load).await.copied()
    }

    /// Refreshes a token that expires soon.
    ///
    /// If that fails, the old token is used; if the server rejects it, the renewal reports the error.
    pub(super) async fn refresh_if_expiring(&self) {
        let current = self.slot.current();
        if !current.expires_soon() || !current.has_refresh_token() || self.renewals.is_backing_off()
        {
            return;
        }
        let lock = if current.has_expired() {
            Some(self.renewals.lock().await)
        } else {
            // Another task is refreshing; the old token is still valid.
            self.renewals.try_lock()
        };
        let Some(lock) = lock else { return };
        if self.slot.generation() != current.generation {
            return;
        }
        let this = self.clone();
        let refreshed = run_to_completion(async move { this.refresh_locked(lock).await });
        if refreshed.await.is_err() {
            self.renewals.back_off();
        }
    }

    async fn refresh_locked(&self, lock: RenewalLock) -> Result<(), AuthorizationError> {
        // Only a login in another process holds the lock longer; the next renewal waits for it.
        const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
        let store_lock = self.settings.store.lock(&self.settings.server_url);
        let Ok(store_lock) = time::timeout(LOCK_TIMEOUT, store_lock).await else {
            return Err(AuthorizationError::new(
                AuthorizationStep::Store,
                "another process is logging in",
            ));
        };
        let lock = lock.with_store_lock(store_lock?);
        match self.newest().await? {
            // The user has logged out.
            None => self.slot.clear(),
            Some(login) if self.slot.current().uses(&login) && login.tokens.refresh.is_some() => {
                self.refresh(&login, &login.server, &lock).await?;
            }
            // Another process has refreshed it, or has found that it cannot be refreshed.
            Some(login) => {
                self.slot.set(login, LoginOrigin::Store)?;
            }
        }
        Ok(())
    }

    /// Refreshes a login; stores and uses the result.
    pub(super) async fn refresh(
        &self,
        login: &StoredLogin,
        server: &AuthorizationServer,
        // Proof that the lock is held.
        _: &RenewalLock,
    ) -> Result<(), AuthorizationError> {
        let Some(refresh) = &login.tokens.refresh else {
            return Ok(());
        };
        let client = self.client_for_refresh(login, server);
        let endpoint = self.endpoint(server, &client);
        let prover = current_login::prover(login)?;
        let mut binding = prover.as_ref().map(|prover| self.binding(prover));
        let fetch = &*self.settings.fetch;
        let (resource, scopes) = (&login.resource, login.tokens.scopes.as_ref());
        let refreshed = token::refresh(
            fetch,
            &endpoint,
            refresh,
            resource,
            scopes,
            binding.as_mut(),
        )
        .await;
        self.store_issuer_nonce(binding);
        match refreshed {
            Ok(tokens) => {
                let login = StoredLogin {
                    tokens,
                    client,
                    server: server.clone(),
                    obtained: now(),
                    ..login.clone()
                };
                self.save_and_use(login, LoginOrigin::Refresh).await?;
                Ok(())
            }
            Err(failure) => {
                if is_permanent(&failure) {
                    self.drop_refresh_token(login.clone(), &failure).await?;
                }
                Err(failure)
            }
        }
    }

    /// Stores a login without its refresh token, so that it is not tried again.
    async fn drop_refresh_token(
        &self,
        mut login: StoredLogin,
        failure: &AuthorizationError,
    ) -> Result<(), AuthorizationError> {
        let store = &self.settings.store;
        if failure.error_code() == Some("invalid_client")
            && login.client.source == RegistrationSource::Dynamic
        {
            store.save_registration(login.issuer(), None).await?;
        }
        login.tokens.refresh = None;
        store.save(&login).await
    }

    /// Stores a login, then uses it.
    pub(super) async fn save_and_use(
        &self,
        login: StoredLogin,
        origin: LoginOrigin,
    ) -> Result<(), AuthorizationError> {
        let saved = self.settings.store.save(&login).await;
        // Even if it could not be stored, it is the only valid one.
        self.slot.set(login, origin)?;
        saved
    }

    /// Returns the client for refreshing a login; the secret may have been reconfigured.
    pub(super) fn client_for_refresh(
        &self,
        login: &StoredLogin,
        server: &AuthorizationServer,
    ) -> ClientRegistration {
        let settings = &self.settings;
        match (&settings.client_id, &settings.client_secret) {
            (Some(id), Some(secret)) if *id == login.client.id => {
                ClientRegistration::preregistered(server, id, Some(secret.clone()))
            }
            _ => login.client.clone(),
        }
    }

    pub(super) fn endpoint<'a>(
        &'a self,
        server: &'a AuthorizationServer,
        client: &'a ClientRegistration,
    ) -> TokenEndpoint<'a> {
        let endpoint = TokenEndpoint::new(server, client);
        match self.settings.grant.key() {
            Some(key) => endpoint.key(key),
            None => endpoint,
        }
    }

    pub(super) fn binding<'a>(&self, prover: &'a crate::dpop::DpopProver) -> DpopBinding<'a> {
        let mut binding = DpopBinding::new(prover);
        binding.nonce = self.slot.issuer_nonce.get();
        binding
    }

    /// Keeps the nonce of the authorization server for the next request.
    pub(super) fn store_issuer_nonce(&self, binding: Option<DpopBinding<'_>>) {
        if let Some(nonce) = binding.and_then(|binding| binding.nonce) {
            self.slot.issuer_nonce.set(&nonce);
        }
    }
}

/// Returns whether the refresh token is permanently unusable.
pub(super) fn is_permanent(failure: &AuthorizationError) -> bool {
    match failure.error_code() {
        None | Some("server_error" | "temporarily_unavailable" | "slow_down") => false,
        Some("use_dpop_nonce" | "invalid_dpop_proof") => false,
        Some(_) => true,
    }
}

/// Returns whether a login is for this resource and from the issuer that the server names now.
pub(super) fn matches_discovery(login: &StoredLogin, discovery: &DiscoveryResult) -> bool {
    login.issuer() == discovery.server.issuer
        && is_same_resource(&login.resource, &discovery.resource)
}

/// Returns whether all scopes were granted, as far as the authorization server has named them.
pub(super) fn is_granted(login: &StoredLogin, needed: &Scopes) -> bool {
    let granted = login
        .tokens
        .scopes
        .as_ref()
        .or(login.requested_scopes.as_ref());
    granted.is_some_and(|granted| granted.covers(needed))
}

/// Returns whether all scopes were requested.
pub(super) fn was_requested(login: &StoredLogin, needed: &Scopes) -> bool {
    let requested = login.requested_scopes.as_ref();
    requested.is_some_and(|requested| requested.covers(needed))
}

fn token_still_rejected(discovery: &DiscoveryResult) -> AuthorizationError {
    let reason = format!(
        "the server rejects the token that `{}` has just issued",
        discovery.server.issuer
    );
    AuthorizationError::new(AuthorizationStep::Use, reason).with_hint(
        "ask the operator of the server to accept tokens of this issuer with the URL of the server as audience",
    )
}

fn too_many_prompts(discovery: &DiscoveryResult) -> AuthorizationError {
    let reason = format!(
        "the server requests a login at `{}` again and again",
        discovery.server.issuer
    );
    AuthorizationError::new(AuthorizationStep::Authorization, reason).with_hint(
        "wait ten minutes; if it happens again, ask the operator of the server to correct it",
    )
}
