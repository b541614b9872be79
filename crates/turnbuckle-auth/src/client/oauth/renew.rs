//! From a refusal to other credentials, by the shortest way: those of somebody else, a refresh, a login.

use super::{
    OAuth,
    hand::Came,
    scopes,
    turn::{Turn, to_its_end},
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
    fn of(refused: &Refused<'_>, is_bound: bool) -> Option<Wanted> {
        let challenged = scopes::challenged(refused.challenges);
        match (refused.status, scopes::error(refused.challenges)) {
            (401, Some("use_dpop_nonce")) if is_bound => Some(Wanted::Nonce),
            (401 | 403, Some("insufficient_scope")) => challenged.map(Wanted::Scopes),
            (401, _) | (403, Some("invalid_token")) => Some(Wanted::Token),
            _ => None,
        }
    }

    /// Whether a login may be what is wanted.
    fn is_in(&self, login: &Login) -> bool {
        match self {
            Wanted::Scopes(needed) => is_granted(login, needed),
            _ => true,
        }
    }
}

/// A refusal, as far as it matters when it was heard.
pub(super) struct Refusal {
    pub(super) challenges: Vec<Challenge>,
    pub(super) attempts: u32,
}

impl Refusal {
    fn of(refused: &Refused<'_>) -> Refusal {
        Refusal {
            challenges: refused.challenges.to_vec(),
            attempts: refused.attempts,
        }
    }
}

impl OAuth {
    /// Gets other credentials, if there is a way.
    ///
    /// What was begun comes to its end even if the request is given up. A refresh token is often good for one time only, so
    /// that its answer must be kept; and who is about to log in shall not do it for nothing, since the next request will wait
    /// for it.
    pub(super) async fn renew(&self, refused: Refused<'_>) -> Result<Next, Failure> {
        let is_ours = self.settings.is_same_origin(refused.sending.url);
        let wanted = Wanted::of(&refused, self.hand.held().is_bound());
        let Some(wanted) = wanted.filter(|_| is_ours && refused.attempts < MOST_ATTEMPTS) else {
            return Ok(Next::GiveUp);
        };
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
        let (this, refusal) = (self.clone(), Refusal::of(&refused));
        to_its_end(async move { this.renew_in_turn(refusal, wanted, turn).await }).await
    }

    async fn renew_in_turn(
        &self,
        refusal: Refusal,
        wanted: Wanted,
        turn: Turn,
    ) -> Result<Next, Failure> {
        let next = match self.settings.store.lock(&self.settings.server_url).await {
            Ok(lock) => self.renew_now(&refusal, &wanted, &turn.with(lock)).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = &next {
            self.renewals.has_failed(wanted, failure);
        }
        next
    }

    async fn renew_now(
        &self,
        refusal: &Refusal,
        wanted: &Wanted,
        turn: &Turn,
    ) -> Result<Next, Failure> {
        let newest = self.newest().await?;
        if let Some(login) = newest.as_ref().filter(|it| !self.hand.held().is(it)) {
            // Another process has got it, while we waited or since we looked.
            self.hand.hold(login.clone(), Came::FromStore)?;
            if wanted.is_in(login) {
                return Ok(Next::TryAgain);
            }
        }
        match (wanted, newest) {
            (Wanted::Scopes(needed), Some(login)) => {
                self.step_up(refusal, needed, &login, turn).await
            }
            (_, newest) => self.replace(refusal, newest.as_ref(), turn).await,
        }
    }

    /// Gets another token in place of one that is not good any more, or the first one.
    async fn replace(
        &self,
        refusal: &Refusal,
        kept: Option<&Login>,
        turn: &Turn,
    ) -> Result<Next, Failure> {
        let found = self.discover(&refusal.challenges).await?;
        let wanted = scopes::challenged(&refusal.challenges);
        if let Some(login) = kept.filter(|login| is_from(login, &found)) {
            let held = self.hand.held();
            let has_asked = wanted.as_ref().is_none_or(|it| was_asked(login, it));
            if held.is_new(Came::ByLogin) && has_asked {
                return Err(useless(&found));
            }
            if login.tokens.refresh.is_some() && !held.is_new(Came::ByRefresh) {
                match self.refresh(login, &found.server, turn).await {
                    Ok(()) => return Ok(Next::TryAgain),
                    Err(failure) if !is_final(&failure) => return Err(failure),
                    Err(_) => {}
                }
            }
        }
        if self.settings.grant.needs_a_person() && !self.renewals.may_ask() {
            return Err(asked_too_often(&found));
        }
        self.log_in_at(&found, wanted.as_ref(), kept, turn).await?;
        Ok(Next::TryAgain)
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

    /// Returns the login that counts: the one that is kept, unless ours is newer and could not be kept.
    pub(super) async fn newest(&self) -> Result<Option<Login>, Failure> {
        let kept = self.login().await?;
        let held = self.hand.held().login;
        Ok(match (kept, held) {
            (Some(kept), Some(held)) if kept.obtained < held.obtained => Some((*held).clone()),
            // Nothing is kept after a logout, whatever we still have.
            (kept, _) => kept,
        })
    }

    pub(super) async fn discover(&self, challenges: &[Challenge]) -> Result<Discovered, Failure> {
        let settings = &self.settings;
        let (fetch, url) = (&*settings.fetch, &settings.server_url);
        discovery::discover(fetch, url, challenges, &settings.protocol_version).await
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

/// Whether all of these were granted, as far as the authorization server said.
pub(super) fn is_granted(login: &Login, needed: &Scopes) -> bool {
    let granted = login.tokens.scopes.as_ref().or(login.asked.as_ref());
    granted.is_some_and(|granted| granted.covers(needed))
}

/// Whether all of these were asked for.
pub(super) fn was_asked(login: &Login, needed: &Scopes) -> bool {
    let asked = login.asked.as_ref();
    asked.is_some_and(|asked| asked.covers(needed))
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

fn asked_too_often(found: &Discovered) -> Failure {
    let reason = format!(
        "the server sends you to log in at `{}` again and again",
        found.server.issuer
    );
    Failure::new(Step::Authorization, reason)
        .cure("wait ten minutes; if it stays so, whoever runs the server must correct it")
}
