//! Replacement for TLS in builds without it.

use super::{EmbeddingError, wire::EmbeddingHttpClient};

pub(super) const TLS_AVAILABLE: bool = false;

/// Always fails: this build supports plain HTTP only.
pub(super) fn wire() -> Result<EmbeddingHttpClient, EmbeddingError> {
    Err(EmbeddingError::TlsUnavailable)
}
