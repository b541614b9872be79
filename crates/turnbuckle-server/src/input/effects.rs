//! Effects that a handler must not repeat when it runs again.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use turnbuckle_store::Claim;

use crate::{context::Context, tools::ToolError};

/// How long the outcome of an exactly-once effect is remembered.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a caller looks whether another one has finished the effect.
const LOOK: Duration = Duration::from_millis(50);

impl Context {
    /// Does something that must not be repeated when the handler runs again after a question.
    ///
    /// The outcome is remembered in the state that travels with the client; a failure is not. It happens at least
    /// once: a client that loses an answer may call again from the beginning, and work that still runs when a question
    /// asked beside it ends the round is dropped and begun again. See [`exactly_once`](Self::exactly_once).
    pub async fn once<T, E, F>(&self, key: &str, work: impl FnOnce() -> F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, E>>,
    {
        let Some(rounds) = &self.call.rounds else {
            return work().await;
        };
        if let Some(outcome) = rounds.remembered(key) {
            let Ok(outcome) = serde_json::from_str(&outcome) else {
                // Doing it again would be the one thing that must not happen.
                rounds.fail_with_lost_outcome(key);
                self.call.outbox.wake();
                return std::future::pending().await;
            };
            return Ok(outcome);
        }
        let outcome = work().await?;
        match serde_json::value::to_raw_value(&outcome) {
            Ok(json) => rounds.remember(key, json),
            Err(error) => {
                tracing::warn!(key, %error, "the outcome cannot be remembered: it may be repeated");
            }
        }
        Ok(outcome)
    }

    /// Does something at most once for this caller and `key`, whatever the client repeats, and returns the outcome to
    /// all who ask.
    ///
    /// `key` names the effect itself, for example an order number; callers that no transport could tell apart share it.
    /// The outcome is kept in the store for a day. While one call does it, others wait, as long as a client may take to
    /// answer a question. If that call dies on the way, nobody can know how far it came: the others get an error, and
    /// the effect is not tried again before the day is over. So ask nothing inside of `work`.
    pub async fn exactly_once<T, E, F>(
        &self,
        key: &str,
        work: impl FnOnce() -> F,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
        F: Future<Output = Result<T, E>>,
    {
        let journals = self.call.server.store_ref().journals.clone();
        let key = self.claim_key(key);
        let given_up = Instant::now() + self.call.server.patience().silent;
        let token = loop {
            match journals.claim(&key, REMEMBERED).await? {
                Claim::Fresh(token) => break token,
                Claim::Done(outcome) => return Ok(serde_json::from_slice(&outcome)?),
                Claim::Running if Instant::now() < given_up => tokio::time::sleep(LOOK).await,
                Claim::Running => {
                    return Err(ToolError::new(
                        "this was begun by another call that has not finished; whether it took effect is unknown",
                    ));
                }
            }
        };
        match work().await {
            Ok(outcome) => {
                journals
                    .complete(token, serde_json::to_vec(&outcome)?.into())
                    .await?;
                Ok(outcome)
            }
            Err(error) => {
                journals.abandon(token).await?;
                Err(error.into())
            }
        }
    }

    /// Keeps the effects of different callers and servers apart.
    fn claim_key(&self, key: &str) -> String {
        let who = self
            .principal()
            .map(|who| (&*who.issuer, &*who.subject, who.client.as_deref()));
        let mut hash = Sha256::new();
        hash.update(serde_json::to_vec(&(self.call.server.name(), who, key)).unwrap_or_default());
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}
