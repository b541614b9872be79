//! Background creation of missing embeddings.

use std::{ops::ControlFlow, sync::Arc};

use super::{
    Embedder,
    store::{EmbeddingSource, MissingText},
};
use crate::ContextError;

/// Number of texts per request.
const BATCH_TEXTS: usize = 32;
/// Maximum number of consecutive failures of single texts before giving up.
const MAX_FAILURES: usize = 3;
/// Maximum number of consecutive rejected texts before giving up: the provider may reject all texts.
const MAX_REJECTIONS: usize = 2 * BATCH_TEXTS;

/// Progress of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackfillProgress {
    /// Texts processed, with or without an embedding.
    pub(crate) done: u64,
    /// Texts without an embedding at the start.
    pub(crate) total: u64,
}

/// Result of a backfill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackfillReport {
    /// Embeddings created.
    pub(crate) created: usize,
    /// Texts that the provider rejected or that changed during the run. The next run tries them again.
    pub(crate) remaining: usize,
}

/// Creates embeddings until every text has been tried.
///
/// Results are stored after each batch, so little is lost if the run ends early: because `watch` returns `Break`
/// ([`ContextError::Cancelled`]), because the provider fails, or because the future is dropped. `watch` is called
/// before each batch, on a thread that may block.
pub(crate) async fn backfill(
    source: EmbeddingSource,
    embedder: &dyn Embedder,
    mut watch: impl FnMut(BackfillProgress) -> ControlFlow<()> + Send + 'static,
) -> Result<BackfillReport, ContextError> {
    let model: Arc<str> = embedder.model().into();
    let covered = run_blocking(&source, &model, EmbeddingSource::coverage).await?;
    let mut progress = BackfillProgress {
        done: 0,
        total: covered.total.saturating_sub(covered.created),
    };
    let mut report = BackfillReport::default();
    let mut retry_policy = RetryPolicy::default();
    let mut after = 0;
    loop {
        let read = move |source: &EmbeddingSource, model: &str| {
            if watch(progress).is_break() {
                return Err(ContextError::Cancelled);
            }
            Ok((source.missing(model, after, BATCH_TEXTS)?, watch))
        };
        let batch;
        (batch, watch) = run_blocking(&source, &model, read).await?;
        let Some(last) = batch.last() else {
            return Ok(report);
        };
        after = last.row;
        let count = batch.len();
        let made = embed(embedder, batch, &mut retry_policy).await?;
        let save = move |source: &EmbeddingSource, model: &str| source.save(model, made);
        let saved = run_blocking(&source, &model, save).await?;
        report.created += saved;
        report.remaining += count - saved;
        progress.done += count as u64;
        progress.total = progress.total.max(progress.done);
    }
}

/// Embeds a batch. If that fails, embeds its texts one by one, because a single text may exceed the limit of the model.
async fn embed(
    embedder: &dyn Embedder,
    batch: Vec<MissingText>,
    retry_policy: &mut RetryPolicy,
) -> Result<Vec<(MissingText, Vec<f32>)>, ContextError> {
    let texts = batch.iter().map(|pending| pending.text.clone()).collect();
    let error = match embedder.embed(texts).await {
        Ok(vectors) => {
            *retry_policy = RetryPolicy::default();
            return Ok(batch.into_iter().zip(vectors).collect());
        }
        Err(error) => error,
    };
    if let [pending] = &*batch {
        tracing::debug!(row = pending.row, %error, "a text was not embedded");
        return match error {
            ContextError::EmbeddingRejected(_) => {
                retry_policy.record_failure(error).map(|()| Vec::new())
            }
            error => Err(error),
        };
    }
    tracing::debug!(%error, texts = batch.len(), "a batch failed; embedding its texts one by one");
    let mut made = Vec::new();
    for pending in batch {
        match embedder.embed(vec![pending.text.clone()]).await {
            Ok(mut vectors) => {
                *retry_policy = RetryPolicy::default();
                made.extend(vectors.pop().map(|vector| (pending, vector)));
            }
            Err(error) => retry_policy.record_failure(error)?,
        }
    }
    Ok(made)
}

/// Counts consecutive failures and rejections.
#[derive(Default)]
struct RetryPolicy {
    failures: usize,
    rejections: usize,
}

impl RetryPolicy {
    /// Skips a text, or returns the error after too many in a row.
    fn record_failure(&mut self, error: ContextError) -> Result<(), ContextError> {
        match error {
            ContextError::EmbeddingRejected(_) => self.rejections += 1,
            _ => self.failures += 1,
        }
        if self.failures < MAX_FAILURES && self.rejections < MAX_REJECTIONS {
            Ok(())
        } else {
            Err(error)
        }
    }
}

/// Runs blocking work on a source.
async fn run_blocking<T: Send + 'static>(
    source: &EmbeddingSource,
    model: &Arc<str>,
    work: impl FnOnce(&EmbeddingSource, &str) -> Result<T, ContextError> + Send + 'static,
) -> Result<T, ContextError> {
    let (source, model) = (source.clone(), Arc::clone(model));
    let done = tokio::task::spawn_blocking(move || work(&source, &model)).await;
    // Fails only if the work panicked or the runtime shuts down.
    done.unwrap_or(Err(ContextError::Cancelled))
}
