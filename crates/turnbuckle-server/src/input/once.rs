//! Side effects that must not be repeated when a handler runs again.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use turnbuckle_protocol::Principal;
use turnbuckle_store::ClaimStatus;

use crate::{Server, context::Context, tools::ToolError};

/// Lifetime of a stored exactly-once outcome.
const OUTCOME_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// Interval at which a waiting caller checks whether another call has finished.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Context {
    /// Runs a side effect that must not be repeated when the handler runs again after a client request.
    ///
    /// A successful outcome is stored in the request state; a failure is not. The effect runs at least once: a client
    /// that loses a response may repeat the call, and work still running when a concurrent client request ends the
    /// round trip is dropped and restarted. See [`exactly_once`](Self::exactly_once).
    ///
    /// In a prompt or resource, `?` converts the error to a [`RequestError`](crate::RequestError).
    pub async fn once<T, F>(&self, key: &str, work: impl FnOnce() -> F) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, ToolError>>,
    {
        let Some(round_trips) = &self.call.round_trips else {
            return work().await;
        };
        if let Some(outcome) = round_trips.stored_outcome(key) {
            let Ok(outcome) = serde_json::from_str(&outcome) else {
                // Running the effect again is the one thing that must not happen.
                round_trips.fail_with_lost_outcome(key);
                self.call.outbox.wake();
                return std::future::pending().await;
            };
            return Ok(outcome);
        }
        let outcome = work().await?;
        match serde_json::value::to_raw_value(&outcome) {
            Ok(json) => round_trips.store_outcome(key, json),
            Err(error) => {
                tracing::warn!(key, %error, "the outcome cannot be stored; the effect may be repeated");
            }
        }
        Ok(outcome)
    }

    /// Runs a side effect at most once per caller and `key`, however often the client repeats the call, and returns its
    /// outcome every time.
    ///
    /// `key` identifies the effect, for example an order number. Callers that the transport cannot distinguish share
    /// it. The outcome is stored for a day. Concurrent calls wait for it, up to the client request timeout. If the
    /// running call dies, its progress is unknown: the others get an error, and the effect is not retried for a day. So
    /// do not send client requests inside `work`.
    pub async fn exactly_once<T, F>(
        &self,
        key: &str,
        work: impl FnOnce() -> F,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, ToolError>>,
    {
        let claims = self.call.server.store_ref().claims.clone();
        let key = self.claim_key(key);
        let deadline = Instant::now() + self.call.server.client_request_timeouts().idle;
        let token = loop {
            match claims.claim(&key, OUTCOME_TTL).await? {
                ClaimStatus::Granted(token) => break token,
                ClaimStatus::Done(outcome) => return Ok(serde_json::from_slice(&outcome)?),
                ClaimStatus::Running if Instant::now() < deadline => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                ClaimStatus::Running => {
                    return Err(ToolError::new(
                        "another call started this and has not finished; it is unknown whether it took effect",
                    ));
                }
            }
        };
        match work().await {
            Ok(outcome) => {
                claims
                    .complete(token, serde_json::to_vec(&outcome)?.into())
                    .await?;
                Ok(outcome)
            }
            Err(error) => {
                claims.abandon(token).await?;
                Err(error)
            }
        }
    }

    /// Separates the effects of different callers and servers.
    fn claim_key(&self, key: &str) -> String {
        let principal_key = self.principal().map(|principal| {
            (
                &*principal.issuer,
                &*principal.subject,
                principal.client.as_deref(),
            )
        });
        let mut hash = Sha256::new();
        hash.update(
            serde_json::to_vec(&(self.call.server.name(), principal_key, key)).unwrap_or_default(),
        );
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// Returns the key under which the store accounts for a caller, or `None` if the transport cannot distinguish callers.
pub(crate) fn store_owner(server: &Server, principal: Option<&Principal>) -> Option<String> {
    let principal = principal?;
    let named = (
        server.name(),
        &principal.issuer,
        &principal.subject,
        &principal.client,
    );
    let digest = Sha256::new_with_prefix(b"turnbuckle owner\0")
        .chain_update(serde_json::to_vec(&named).expect("strings can be written"))
        .finalize();
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}
