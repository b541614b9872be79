//! Programs that are built without TLS.

use crate::RedisStoreError;

/// Rejects a URL with TLS.
pub(crate) fn install() -> Result<(), RedisStoreError> {
    Err(RedisStoreError::InvalidUrl {
        reason: "this program was built without TLS, which `rediss` needs".to_owned(),
    })
}
