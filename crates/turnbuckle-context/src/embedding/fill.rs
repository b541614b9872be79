//! Making the embeddings that are missing, while nobody waits for them.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Embedder, Of, Pending, coverage, missing, put};
use crate::{ContextError, Database};

/// Texts that a provider gets at once.
const BATCH: usize = 32;
/// Texts in a row that fail one by one before the provider is given up.
const MOST_FAILURES: usize = 3;
/// Texts in a row that a provider does not take before it is given up: it may be one that takes none.
const MOST_REFUSALS: usize = 2 * BATCH;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Texts that are done, with or without an embedding.
    pub done: u64,
    /// Texts that had none when it began.
    pub total: u64,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filled {
    /// Embeddings that were made.
    pub made: usize,
    /// Texts that the provider refused, or that changed meanwhile; they are tried again next time.
    pub left: usize,
}

/// Makes embeddings until every text has been tried.
///
/// What is made is kept batch by batch, so that little is lost when it ends early: because `watch` says so
/// ([`ContextError::Cancelled`]), because the provider fails, or because the future is dropped. `watch` is called before
/// each batch, on a thread that may block.
pub async fn fill(
    database: &Arc<Database>,
    embedder: &dyn Embedder,
    of: Of,
    mut watch: impl FnMut(Progress) -> ControlFlow<()> + Send + 'static,
) -> Result<Filled, ContextError> {
    let model: Arc<str> = embedder.model().into();
    let covered = on(database, &model, move |db, model| coverage(db, of, model)).await?;
    let mut progress = Progress {
        done: 0,
        total: covered.all.saturating_sub(covered.made),
    };
    let mut filled = Filled::default();
    let mut patience = Patience::default();
    let mut after = 0;
    loop {
        let read = move |db: &Database, model: &str| {
            if watch(progress).is_break() {
                return Err(ContextError::Cancelled);
            }
            Ok((missing(db, of, model, after, BATCH)?, watch))
        };
        let batch;
        (batch, watch) = on(database, &model, read).await?;
        let Some(last) = batch.last() else {
            return Ok(filled);
        };
        after = last.row;
        let count = batch.len();
        let made = embed(embedder, batch, &mut patience).await?;
        let keep = move |db: &Database, model: &str| put(db, of, model, made);
        let kept = on(database, &model, keep).await?;
        filled.made += kept;
        filled.left += count - kept;
        progress.done += count as u64;
        progress.total = progress.total.max(progress.done);
    }
}

/// Embeds a batch; if that fails, text by text, since a single one may be too much for the model.
async fn embed(
    embedder: &dyn Embedder,
    batch: Vec<Pending>,
    patience: &mut Patience,
) -> Result<Vec<(Pending, Vec<f32>)>, ContextError> {
    let texts = batch.iter().map(|pending| pending.text.clone()).collect();
    let problem = match embedder.embed(texts).await {
        Ok(vectors) => {
            *patience = Patience::default();
            return Ok(batch.into_iter().zip(vectors).collect());
        }
        Err(problem) => problem,
    };
    if let [pending] = &*batch {
        tracing::debug!(row = pending.row, %problem, "no embedding of a text");
        return match problem {
            ContextError::EmbeddingRefused(_) => patience.bear(problem).map(|()| Vec::new()),
            problem => Err(problem),
        };
    }
    tracing::debug!(%problem, texts = batch.len(), "a batch failed; trying its texts alone");
    let mut made = Vec::new();
    for pending in batch {
        match embedder.embed(vec![pending.text.clone()]).await {
            Ok(mut vectors) => {
                *patience = Patience::default();
                made.extend(vectors.pop().map(|vector| (pending, vector)));
            }
            Err(problem) => patience.bear(problem)?,
        }
    }
    Ok(made)
}

/// How often in a row a provider failed, or did not take a text.
#[derive(Default)]
struct Patience {
    failures: usize,
    refusals: usize,
}

impl Patience {
    /// Passes over a text, unless it has become clear that the others will fare no better.
    fn bear(&mut self, problem: ContextError) -> Result<(), ContextError> {
        match problem {
            ContextError::EmbeddingRefused(_) => self.refusals += 1,
            _ => self.failures += 1,
        }
        match self.failures < MOST_FAILURES && self.refusals < MOST_REFUSALS {
            true => Ok(()),
            false => Err(problem),
        }
    }
}

/// Does work on a database where waiting for a disk holds up nobody.
async fn on<T: Send + 'static>(
    database: &Arc<Database>,
    model: &Arc<str>,
    work: impl FnOnce(&Database, &str) -> Result<T, ContextError> + Send + 'static,
) -> Result<T, ContextError> {
    let (database, model) = (Arc::clone(database), Arc::clone(model));
    let done = tokio::task::spawn_blocking(move || work(&database, &model)).await;
    // It fails only if the work panicked, or the runtime ends.
    done.unwrap_or(Err(ContextError::Cancelled))
}
