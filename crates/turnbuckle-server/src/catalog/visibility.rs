//! Visibility of tools, prompts and resources.
//!
//! Hidden items are unreachable: lists omit them, and requests for them are answered as if they did not exist.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use turnbuckle_protocol::Principal;

use crate::{Prompt, Resource, ResourceTemplate, Tool, request::error::report_panic};

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
    fn intersect(
        &mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) {
        self.predicate = Some(match self.predicate.take() {
            None => Arc::new(predicate),
            Some(earlier) => Arc::new(move |principal| earlier(principal) && predicate(principal)),
        });
    }
}

impl Tool {
    /// Restricts the tool to callers that match `predicate`. For others it does not exist.
    ///
    /// The predicate gets the authenticated caller, if known, and nothing else of the request, so the visibility is
    /// stable per caller. Repeated calls must all agree. Lists with such items have a private cache scope.
    ///
    /// ```
    /// use turnbuckle_server::Tool;
    ///
    /// let restart = Tool::new("restart", async || Ok("restarted".to_owned()))
    ///     .visible_to(|principal| principal.is_some_and(|who| who.scopes.contains("admin")));
    /// ```
    #[must_use]
    pub fn visible_to(
        mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility.intersect(predicate);
        self
    }
}

impl Prompt {
    /// Restricts the prompt to callers that match `predicate`; see [`Tool::visible_to`].
    ///
    /// ```
    /// use turnbuckle_server::Prompt;
    ///
    /// let review = Prompt::new("review", async || Ok("Review the salaries."))
    ///     .visible_to(|principal| principal.is_some_and(|who| who.subject == "ada"));
    /// ```
    #[must_use]
    pub fn visible_to(
        mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility.intersect(predicate);
        self
    }
}

impl Resource {
    /// Restricts the resource to callers that match `predicate`; see [`Tool::visible_to`].
    ///
    /// Other callers cannot subscribe to it or receive its updates. A template that matches the same URI can still read
    /// it, under its own predicate, but does not deliver updates.
    ///
    /// ```
    /// use turnbuckle_server::Resource;
    ///
    /// let salaries = Resource::text("staff://salaries", "salaries", "Ada: 100")
    ///     .visible_to(|principal| principal.is_some_and(|who| who.scopes.contains("payroll")));
    /// ```
    #[must_use]
    pub fn visible_to(
        mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility.intersect(predicate);
        self
    }
}

impl ResourceTemplate {
    /// Restricts these resources to callers that match `predicate`; see [`Resource::visible_to`].
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// use turnbuckle_server::{Context, ResourceTemplate};
    ///
    /// let files = ResourceTemplate::new(
    ///     "staff://{name}",
    ///     "file",
    ///     async |_: BTreeMap<String, String>, _: Context| Ok("…"),
    /// )
    /// .visible_to(|principal| principal.is_some_and(|who| who.scopes.contains("payroll")));
    /// ```
    #[must_use]
    pub fn visible_to(
        mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility.intersect(predicate);
        self
    }
}
