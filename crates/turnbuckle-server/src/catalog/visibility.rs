//! Visibility of tools, prompts and resources.
//!
//! Hidden items are unreachable: lists omit them, and requests for them are answered as if they did not exist.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use turnbuckle_protocol::Principal;

use crate::request::error::report_panic;

/// Public, or restricted by a predicate.
#[derive(Clone, Default)]
pub(crate) struct Visibility {
    predicate: Option<Arc<Predicate>>,
}

type Predicate = dyn Fn(Option<&Principal>) -> bool + Send + Sync;

impl Visibility {
    /// Public.
    pub(crate) const OPEN: Self = Self { predicate: None };

    /// Returns whether every caller may see the item.
    pub(crate) fn is_open(&self) -> bool {
        self.predicate.is_none()
    }

    /// Returns whether the caller may see the item.
    pub(crate) fn allows(&self, principal: Option<&Principal>) -> bool {
        match &self.predicate {
            None => true,
            Some(predicate) => catch_unwind(AssertUnwindSafe(|| predicate(principal)))
                // If the predicate panics, access is denied.
                .unwrap_or_else(|panic| {
                    report_panic(&*panic);
                    false
                }),
        }
    }

    /// Adds a predicate. All predicates must agree.
    pub(crate) fn intersect(
        &mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) {
        self.predicate = Some(match self.predicate.take() {
            None => Arc::new(predicate),
            Some(earlier) => Arc::new(move |principal| earlier(principal) && predicate(principal)),
        });
    }
}
