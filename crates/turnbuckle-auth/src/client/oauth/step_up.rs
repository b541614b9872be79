//! More than was asked for before.

use super::{
    OAuth,
    hand::Came,
    renew::{Refusal, is_granted, was_asked},
    turn::Turn,
};
use crate::{Failure, Next, Scopes, client::store::Login};

impl OAuth {
    /// Asks for what is needed and for all that was asked for before, once for the same needs.
    ///
    /// Hands the refusal on where asking has no prospects.
    pub(super) async fn step_up(
        &self,
        refusal: &Refusal,
        needed: &Scopes,
        login: &Login,
        turn: &Turn,
    ) -> Result<Next, Failure> {
        if self.is_in_vain(refusal, needed, login) || !self.renewals.may_step_up(needed) {
            return Ok(Next::GiveUp);
        }
        if self.settings.grant.needs_a_person() && !self.renewals.may_ask() {
            return Ok(Next::GiveUp);
        }
        let more = self.ask_for_more(refusal, needed, login, turn).await;
        if let Err(failure) = &more
            && !matches!(
                failure.error_code(),
                Some("access_denied" | "invalid_scope")
            )
        {
            // Nobody has said no.
            self.renewals.forget_step_up(needed);
        }
        more
    }

    async fn ask_for_more(
        &self,
        refusal: &Refusal,
        needed: &Scopes,
        login: &Login,
        turn: &Turn,
    ) -> Result<Next, Failure> {
        let found = self.discover(&refusal.challenges).await?;
        self.log_in_at(&found, Some(needed), Some(login), turn)
            .await?;
        Ok(Next::TryAgain)
    }

    fn is_in_vain(&self, refusal: &Refusal, needed: &Scopes, login: &Login) -> bool {
        // The first refusal may have led to the first login, and two more to more scopes.
        const MOST_ATTEMPTS: u32 = 3;
        let was_just_asked = self.hand.held().is_new(Came::ByLogin) && was_asked(login, needed);
        is_granted(login, needed) || was_just_asked || refusal.attempts > MOST_ATTEMPTS
    }
}
