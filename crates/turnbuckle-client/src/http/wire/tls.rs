//! TLS on top of a connection, trusting whom the operating system trusts.

use std::sync::Arc;

use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
use rustls::{ClientConfig, crypto::ring};

use super::{HttpError, dial::Dialer};

/// Wraps every connection of a dialer.
pub(super) fn secured(dialer: Dialer) -> Result<Dialer, HttpError> {
    // The provider is named, since a program may have none installed, or another one.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|problem| HttpError::Tls(problem.into()))?
        .try_with_platform_verifier()
        .map_err(|problem| HttpError::Tls(problem.into()))?
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_http1()
        .wrap_connector(dialer);
    Ok(Dialer::of_service(connector))
}
