//! Parameters on their way down, to the revision that is spoken.

use std::borrow::Cow;

use serde::Serialize;
use turnbuckle_protocol::{Revision, Versioned};

/// Parameters that can be sent in any revision.
pub(crate) trait Lowered: Serialize + Clone {
    /// Returns them as a peer of `to` can read them.
    fn lowered(&self, to: Revision) -> Cow<'_, Self>;
}

impl<P: Serialize + Versioned + Clone> Lowered for P {
    fn lowered(&self, to: Revision) -> Cow<'_, Self> {
        let mut params = self.clone();
        params.lower(to);
        Cow::Owned(params)
    }
}
