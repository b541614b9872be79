//! What stands in for TLS when it was left out.

use super::Problem;
use super::wire::Wire;

pub(super) const IS_THERE: bool = false;

/// Refuses: this build speaks plain HTTP only.
pub(super) fn wire() -> Result<Wire, Problem> {
    Err(Problem::NoTls)
}
