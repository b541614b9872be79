//! TLS to Redis.

use crate::RedisStoreError;

/// Installs the cryptography for TLS, unless the program has installed its own.
pub(crate) fn install() -> Result<(), RedisStoreError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only if another thread has just installed one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    Ok(())
}
