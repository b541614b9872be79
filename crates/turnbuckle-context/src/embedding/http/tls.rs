//! TLS with the platform's certificate verifier.

use std::sync::Arc;

use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
use rustls::{ClientConfig, crypto::ring};

use super::{
    EmbeddingError,
    wire::{EmbeddingHttpClient, tcp},
};

pub(super) const TLS_AVAILABLE: bool = true;

/// Creates a client that only uses HTTPS.
pub(super) fn wire() -> Result<EmbeddingHttpClient, EmbeddingError> {
    // Set the crypto provider explicitly: the program may have installed none, or another one.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| EmbeddingError::TlsSetup(error.into()))?
        .try_with_platform_verifier()
        .map_err(|error| EmbeddingError::TlsSetup(error.into()))?
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_http1()
        .wrap_connector(tcp());
    Ok(EmbeddingHttpClient::with_connector(connector))
}
