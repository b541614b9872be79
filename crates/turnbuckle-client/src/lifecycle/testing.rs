//! Rules for tests that need some.

use std::sync::Arc;

use turnbuckle_protocol::types::{ClientCapabilities, Implementation};

use super::{Rules, stateless};

/// The rules of 2026-07-28.
pub(crate) fn modern_rules() -> Arc<Rules> {
    let info = Implementation::new("test", "1");
    Arc::new(stateless::rules(&info, &ClientCapabilities::default()))
}
