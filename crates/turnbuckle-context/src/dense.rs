//! Embeddings beside the words: asked for with a time limit, and never needed.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Database;
use crate::code::Dense;
use crate::desk::Desk;

/// How long a search waits for the vector of its question.
const PATIENCE: Duration = Duration::from_secs(3);

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
        let question = self.redactor().redact(text).text.into_owned();
        let answer = tokio::time::timeout(PATIENCE, embedder.embed(vec![question])).await;
        match answer
            .ok()
            .and_then(Result::ok)
            .and_then(|mut all| all.pop())
        {
            Some(vector) => {
                let model = embedder.model().to_owned();
                (Some(Dense { model, vector }), Embeddings::Used)
            }
            None => {
                tracing::warn!(model = embedder.model(), "no embedding of a question");
                (None, Embeddings::Unavailable)
            }
        }
    }

    /// Lets vectors be made for what has none yet, while nobody waits for them.
    pub(crate) fn embed_soon(&self, database: &Arc<Database>) {
        let _ = database;
    }
}
