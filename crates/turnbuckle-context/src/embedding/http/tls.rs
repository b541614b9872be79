//! TLS, trusting whom the operating system trusts.

use std::sync::Arc;

use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
use rustls::{ClientConfig, crypto::ring};

use super::Problem;
use super::wire::{Wire, tcp};

pub(super) const IS_THERE: bool = true;

/// Speaks HTTP over TLS, and nothing else.
pub(super) fn wire() -> Result<Wire, Problem> {
    // The provider is named, since a program may have none installed, or another one.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|problem| Problem::Tls(problem.into()))?
        .try_with_platform_verifier()
        .map_err(|problem| Problem::Tls(problem.into()))?
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_http1()
        .wrap_connector(tcp());
    Ok(Wire::over(connector))
}
