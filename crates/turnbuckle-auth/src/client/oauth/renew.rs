//! From a refusal to other credentials, by the shortest way: those of somebody else, a refresh, a login.

use std::time::Duration;

use tokio::time;

use super::{
    OAuth,
    hand::{Came, Held},
    scopes,
    turn::Turn,
};
use crate::{
    Challenge, Failure, Next, Refused, Scopes, Step,
    client::{
        discovery::{self, Discovered},
        store::Login,
    },
    is_same_resource,
};

/// How often one request is sent, whatever happens.
const MOST_ATTEMPTS: u32 = 5;

/// What a server that refuses wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A token that is good.
    Token,
    /// A token that is good for these, too.
    Scopes(Scopes),
    /// A proof with another nonce.
    Nonce,
}

impl Wanted {
    fn of(refused: &Refused<'_>) -> Option<Wanted> {
        let challenged = scopes::challenged(refused.challenges);
        match (refused.status, scopes::error(refused.challenges)) {
            (401, Some("use_dpop_nonce")) => Some(Wanted::Nonce),
            (401 | 403, Some("insufficient_scope")) => challenged.map(Wanted::Scopes),
            (401, _) | (403, Some("invalid_token")) => Some(Wanted::Token),
            _ => None,
        }
    }
}

impl OAuth {
    /// Gets other credentials, if there is a way.
    pub(super) async fn renew(&self, refused: Refused<'_>) -> Result<Next, Failure> {
        let is_ours = self.settings.is_same_origin(refused.sending.url);
        let Some(wanted) = Wanted::of(&refused).filter(|_| is_ours) else {
            return Ok(Next::GiveUp);
        };
        if refused.attempts >= MOST_ATTEMPTS {
            return Ok(Next::GiveUp);
        }
        if wanted == Wanted::Nonce {
            return Ok(self.prove_again(&refused));
        }
        let failures = self.renewals.failures();
        let turn = self.renewals.turn().await;
        if self.hand.generation() != refused.generation {
            return Ok(Next::TryAgain);
        }
        // Who was denied is not asked again for each request that waited for the answer.
        if let Some(failure) = self.renewals.failure_since(failures, &wanted) {
            return Err(failure);
        }
        let next = self.renew_in_turn(&refused, &wanted, turn).await;
        if let Err(failure) = &next {
            self.renewals.has_failed(wanted, failure);
        }
        next
    }

    /// Uses what the store has, the first time that anything is asked.
    pub(super) async fn load(&self) -> Result<(), Failure> {
        let load = async || {
            if let Some(login) = self.login().await? {
                self.hand.hold(login, Came::FromStore)?;
            }
            Ok(())
        };
        self.renewals.loaded.get_or_try_init(load).await.copied()
    }

    /// Refreshes a token that ends soon.
    ///
    /// If that fails, the old one is used: the server has the last word, and its refusal leads to a failure that says why.
    pub(super) async fn renew_ahead(&self) {
        let held = self.hand.held();
        let can = held.is_ending() && has_refresh_token(&held) && !self.renewals.is_resting();
        if !can {
            return;
        }
        let turn = match held.is_over() {
            true => Some(self.renewals.turn().await),
            // Somebody else is at it, and until then the old one will do.
            false => self.renewals.try_turn(),
        };
        let Some(turn) = turn else { return };
        if self.hand.generation() == held.generation && self.refresh_in_turn(turn).await.is_err() {
            self.renewals.rest();
        }
    }

    async fn refresh_in_turn(&self, turn: Turn) -> Result<(), Failure> {
        // Longer only takes a login elsewhere, whose end the next refusal will wait for.
        const PATIENCE: Duration = Duration::from_secs(10);
        let lock = self.settings.store.lock(&self.settings.server_url);
        let Ok(lock) = time::timeout(PATIENCE, lock).await else {
            return Err(Failure::new(Step::Store, "somebody else is logging in"));
        };
        let turn = turn.with(lock?);
        let Some(login) = self.login().await? else {
            return Ok(());
        };
        if !self.hand.held().is(&login) {
            self.hand.hold(login, Came::FromStore)?;
            return Ok(());
        }
        let server = login.server.clone();
        self.refresh(login, server, turn).await
    }

    async fn renew_in_turn(
        &self,
        refused: &Refused<'_>,
        wanted: &Wanted,
        turn: Turn,
    ) -> Result<Next, Failure> {
        let lock = self.settings.store.lock(&self.settings.server_url).await?;
        let turn = turn.with(lock);
        let kept = self.login().await?;
        if let Some(login) = kept.as_ref().filter(|login| !self.hand.held().is(login)) {
            // Of another process, while we waited; or we have not looked for a while.
            self.hand.hold(login.clone(), Came::FromStore)?;
            if wanted.is_in(login) {
                return Ok(Next::TryAgain);
            }
        }
        match (wanted, kept) {
            (Wanted::Scopes(needed), Some(login)) => {
                self.step_up(refused, needed, login, turn).await
            }
            (_, kept) => self.replace(refused, kept, turn).await,
        }
    }

    /// Gets another token in place of one that is not good any more, or the first one.
    async fn replace(
        &self,
        refused: &Refused<'_>,
        kept: Option<Login>,
        turn: Turn,
    ) -> Result<Next, Failure> {
        let found = self.discover(refused.challenges).await?;
        let wanted = scopes::challenged(refused.challenges);
        if let Some(login) = kept.as_ref().filter(|login| is_from(login, &found)) {
            let held = self.hand.held();
            let asks_for_more = wanted.as_ref().is_some_and(|more| !covers(login, more));
            if held.is_new(Came::ByLogin) && !asks_for_more {
                return Err(useless(&found));
            }
            if login.tokens.refresh.is_some() && !held.is_new(Came::ByRefresh) {
                let refreshed = self.refresh(login.clone(), found.server.clone(), turn.clone());
                match refreshed.await {
                    Ok(()) => return Ok(Next::TryAgain),
                    Err(failure) if !is_final(&failure) => return Err(failure),
                    Err(_) => {}
                }
            }
        }
        self.log_in_at(&found, wanted.as_ref(), kept.as_ref(), &turn)
            .await?;
        Ok(Next::TryAgain)
    }

    /// Asks for more than before, once for each set of scopes.
    async fn step_up(
        &self,
        refused: &Refused<'_>,
        needed: &Scopes,
        login: Login,
        turn: Turn,
    ) -> Result<Next, Failure> {
        // The first refusal may have led to the first login, and two more to more scopes.
        const MOST_ATTEMPTS: u32 = 3;
        let is_in_vain = covers(&login, needed) || refused.attempts > MOST_ATTEMPTS;
        if is_in_vain || !self.renewals.may_step_up(needed) {
            return Ok(Next::GiveUp);
        }
        let found = self.discover(refused.challenges).await?;
        let more = self.log_in_at(&found, Some(needed), Some(&login), &turn);
        match more.await {
            Ok(_) => Ok(Next::TryAgain),
            Err(failure) => {
                if let Some("access_denied" | "invalid_scope") = failure.error_code() {
                    self.renewals.was_denied(needed.clone());
                }
                Err(failure)
            }
        }
    }

    /// Makes another proof, if there is a nonce for it.
    fn prove_again(&self, refused: &Refused<'_>) -> Next {
        // One nonce may end while the request is under way; a server that never has enough is left.
        const MOST_ATTEMPTS: u32 = 3;
        match self.hand.nonce.get().is_some() && refused.attempts <= MOST_ATTEMPTS {
            true => Next::TryAgain,
            false => Next::GiveUp,
        }
    }

    pub(super) async fn discover(&self, challenges: &[Challenge]) -> Result<Discovered, Failure> {
        let settings = &self.settings;
        let (fetch, url) = (&*settings.fetch, &settings.server_url);
        discovery::discover(fetch, url, challenges, &settings.protocol_version).await
    }
}

impl Wanted {
    /// Whether a login may be what is wanted.
    fn is_in(&self, login: &Login) -> bool {
        match self {
            Wanted::Scopes(needed) => covers(login, needed),
            _ => true,
        }
    }
}

/// Whether a refresh token will never be good again.
pub(super) fn is_final(failure: &Failure) -> bool {
    match failure.error_code() {
        None | Some("server_error" | "temporarily_unavailable" | "slow_down") => false,
        Some("use_dpop_nonce" | "invalid_dpop_proof") => false,
        Some(_) => true,
    }
}

/// Whether the tokens of a login are from whom the server names now, and for it.
pub(super) fn is_from(login: &Login, found: &Discovered) -> bool {
    login.issuer() == found.server.issuer && is_same_resource(&login.resource, &found.resource)
}

/// Whether all of these were asked for; what was then granted is what there is to be had.
fn covers(login: &Login, needed: &Scopes) -> bool {
    let asked = login.asked.as_ref().or(login.tokens.scopes.as_ref());
    asked.is_some_and(|asked| asked.covers(needed))
}

fn has_refresh_token(held: &Held) -> bool {
    let login = held.login.as_ref();
    login.is_some_and(|login| login.tokens.refresh.is_some())
}

fn useless(found: &Discovered) -> Failure {
    let reason = format!(
        "the server refuses the token that `{}` has just given for it",
        found.server.issuer
    );
    Failure::new(Step::Use, reason).cure(
        "whoever runs the server must see that it takes tokens of this issuer, with its own URL as their audience",
    )
}
