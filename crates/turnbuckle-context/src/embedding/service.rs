//! Embeddings for searches and stored texts: optional, with a timeout, computed in the background.

use std::{ops::ControlFlow, time::Duration};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout};

use super::EmbeddingSource;
use crate::{
    ContextError, app_state::AppState, code_search::EmbeddingQuery, embedding,
    memory_store::Partition,
};

/// Maximum time that a search waits for the embedding of its query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);
/// Time without calls after the provider failed.
const PROVIDER_PAUSE: Duration = Duration::from_secs(60);

// The use of embeddings in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum EmbeddingStatus {
    Off,
    Used,
    Unavailable,
}

impl EmbeddingStatus {
    /// Returns a note for the text form of a response.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Off | Self::Used => "",
            Self::Unavailable => "\nEmbeddings are unavailable; results are by words only.",
        }
    }
}

impl AppState {
    /// Returns the embedding of a query, if a provider is configured and responds in time.
    pub(crate) async fn embed_query(
        &self,
        text: &str,
    ) -> (Option<EmbeddingQuery>, EmbeddingStatus) {
        let Some(embedder) = self.embedder() else {
            return (None, EmbeddingStatus::Off);
        };
        if self.embeddings_paused() {
            return (None, EmbeddingStatus::Unavailable);
        }
        let query = self.redactor().redact(text).text;
        let query = embedding::query_text(&query).to_owned();
        let error = match timeout(QUERY_TIMEOUT, embedder.embed(vec![query])).await {
            Ok(Ok(mut vectors)) => match vectors.pop() {
                Some(vector) => {
                    let model = embedder.model().to_owned();
                    return (
                        Some(EmbeddingQuery { model, vector }),
                        EmbeddingStatus::Used,
                    );
                }
                None => "the provider returned no vector".to_owned(),
            },
            Ok(Err(error @ ContextError::EmbeddingRejected(_))) => {
                // Other queries may succeed.
                tracing::warn!(model = embedder.model(), %error, "searching by words only");
                return (None, EmbeddingStatus::Unavailable);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the provider timed out".to_owned(),
        };
        tracing::warn!(model = embedder.model(), error, "searching by words only");
        self.pause_embeddings_until(Instant::now() + PROVIDER_PAUSE);
        (None, EmbeddingStatus::Unavailable)
    }

    /// Starts a background job that creates missing embeddings of a partition.
    pub(crate) fn queue_embedding(&self, partition: Partition) {
        let Some(embedder) = self.embedder().filter(|_| !self.embeddings_paused()) else {
            return;
        };
        let Some(job) = self.try_start_job(&self.data_dir().partition_path(&partition)) else {
            return;
        };
        let (state, embedder) = (self.clone(), embedder.clone());
        tokio::spawn(async move {
            let _job = job;
            let watch = {
                let (state, owner) = (state.clone(), partition.owner().clone());
                move |_| {
                    if state.is_over_quota(&owner) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                }
            };
            // An error with texts of one subject does not imply an error with the other.
            for source in [
                EmbeddingSource::Items(state.memory().clone(), partition.clone()),
                EmbeddingSource::Chunks(state.data_dir().clone(), partition.clone()),
            ] {
                match embedding::backfill(source, &*embedder, watch.clone()).await {
                    Ok(_) => {}
                    // The quota is reached; the provider did not fail.
                    Err(ContextError::Cancelled) => return,
                    Err(error) => {
                        tracing::warn!(%error, "embeddings are missing");
                        state.pause_embeddings_until(Instant::now() + PROVIDER_PAUSE);
                    }
                }
            }
        });
    }
}
