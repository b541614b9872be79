//! Before anything is refused: what the store has, and a refresh in time.

use std::time::Duration;

use tokio::time;

use super::{
    OAuth,
    hand::Came,
    turn::{Turn, to_its_end},
};
use crate::{Failure, Step};

impl OAuth {
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
        if !held.is_ending() || !held.can_be_refreshed() || self.renewals.is_resting() {
            return;
        }
        let turn = match held.is_over() {
            true => Some(self.renewals.turn().await),
            // Somebody else is at it, and until then the old one will do.
            false => self.renewals.try_turn(),
        };
        let Some(turn) = turn else { return };
        if self.hand.generation() != held.generation {
            return;
        }
        let this = self.clone();
        let refreshed = to_its_end(async move { this.refresh_in_turn(turn).await });
        if refreshed.await.is_err() {
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
        match self.newest().await? {
            // Somebody has logged out.
            None => self.hand.let_go(),
            Some(login) if self.hand.held().is(&login) && login.tokens.refresh.is_some() => {
                self.refresh(&login, &login.server, &turn).await?;
            }
            // Somebody has refreshed it, or found out that this cannot be done any more.
            Some(login) => {
                self.hand.hold(login, Came::FromStore)?;
            }
        }
        Ok(())
    }
}
