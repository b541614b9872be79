//! Embeddings beside the words: asked for with a time limit, and never needed.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout};

use crate::code::Dense;
use crate::desk::Desk;
use crate::embedding::{self, Of};
use crate::{ContextError, Database, Owner};

/// How long a search waits for the vector of its question.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a provider that failed is left alone.
const REST: Duration = Duration::from_secs(60);

// Whether embeddings took part in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Embeddings {
    Off,
    Used,
    Unavailable,
}

impl Embeddings {
    /// What a reader of text has to know.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Off | Self::Used => "",
            Self::Unavailable => "\nThe embeddings could not be had; this is by words alone.",
        }
    }
}

impl Desk {
    /// The vector of a question, if there is a provider and it answers in time.
    pub(crate) async fn dense(&self, text: &str) -> (Option<Dense>, Embeddings) {
        let Some(embedder) = self.embedder() else {
            return (None, Embeddings::Off);
        };
        if self.is_resting() {
            return (None, Embeddings::Unavailable);
        }
        let question = self.redactor().redact(text).text;
        let question = embedding::seen(&question).to_owned();
        let problem = match timeout(PATIENCE, embedder.embed(vec![question])).await {
            Ok(Ok(mut vectors)) => match vectors.pop() {
                Some(vector) => {
                    let model = embedder.model().to_owned();
                    return (Some(Dense { model, vector }), Embeddings::Used);
                }
                None => "it gave no vector".to_owned(),
            },
            Ok(Err(problem @ ContextError::EmbeddingRefused(_))) => {
                // Other questions may fare better.
                tracing::warn!(model = embedder.model(), %problem, "searching by words alone");
                return (None, Embeddings::Unavailable);
            }
            Ok(Err(problem)) => problem.to_string(),
            Err(_) => "it took too long".to_owned(),
        };
        tracing::warn!(
            model = embedder.model(),
            problem,
            "searching by words alone"
        );
        self.rest_until(Instant::now() + REST);
        (None, Embeddings::Unavailable)
    }

    /// Lets embeddings be made of what has none yet, while nobody waits for them.
    pub(crate) fn embed_soon(&self, owner: &Owner, database: &Arc<Database>) {
        let Some(embedder) = self.embedder().filter(|_| !self.is_resting()) else {
            return;
        };
        let Some(turn) = self.take_turn(database.path()) else {
            return;
        };
        let (desk, embedder, database) = (self.clone(), embedder.clone(), database.clone());
        let owner = owner.clone();
        tokio::spawn(async move {
            let _turn = turn;
            let watch = {
                let desk = desk.clone();
                move |_| match desk.is_full(&owner) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            // What is wrong with texts of one kind need not be wrong with the others.
            for of in [Of::Item, Of::Chunk] {
                match embedding::fill(&database, &*embedder, of, watch.clone()).await {
                    Ok(_) => {}
                    // There is no room for more, which is not the provider's fault.
                    Err(ContextError::Cancelled) => return,
                    Err(error) => {
                        tracing::warn!(%error, "embeddings are missing");
                        desk.rest_until(Instant::now() + REST);
                    }
                }
            }
        });
    }
}
