//! What stands in for TLS when it was left out.

use super::{HttpError, dial::Dialer};

/// Refuses: this build speaks plain HTTP only.
pub(super) fn secured(_: Dialer) -> Result<Dialer, HttpError> {
    Err(HttpError::NoTls)
}
