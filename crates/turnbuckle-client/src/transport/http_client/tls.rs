//! TLS, if the feature `tls` is enabled.

#[cfg(not(feature = "tls"))]
pub(super) use disabled::wrap_tls;
#[cfg(feature = "tls")]
pub(super) use enabled::wrap_tls;

#[cfg(feature = "tls")]
mod enabled {
    use std::sync::Arc;

    use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
    use rustls::{ClientConfig, crypto::ring};

    use crate::transport::http_client::{HttpError, dial::Dialer};

    /// Wraps every connection of a dialer in TLS, with the trust store of the operating system.
    pub(in super::super) fn wrap_tls(dialer: Dialer) -> Result<Dialer, HttpError> {
        // Set explicitly, because a program may have installed no provider, or another one.
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| HttpError::Tls(error.into()))?
            .try_with_platform_verifier()
            .map_err(|error| HttpError::Tls(error.into()))?
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only()
            .enable_http1()
            .wrap_connector(dialer);
        Ok(Dialer::from_service(connector))
    }
}

#[cfg(not(feature = "tls"))]
mod disabled {
    use crate::transport::http_client::{HttpError, dial::Dialer};

    /// Returns an error: this build does not include TLS.
    pub(in super::super) fn wrap_tls(_: Dialer) -> Result<Dialer, HttpError> {
        Err(HttpError::NoTls)
    }
}
