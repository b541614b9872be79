//! Who may see what is offered.
//!
//! Hidden means unreachable: lists leave it out, and asking for it is answered as if it were not there.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use turnbuckle_protocol::Principal;

use crate::{Prompt, Resource, ResourceTemplate, Tool, incident};

/// Everyone may see it, or those of whom a function says so.
#[derive(Clone, Default)]
pub(crate) struct Visibility {
    predicate: Option<Arc<Predicate>>,
}

type Predicate = dyn Fn(Option<&Principal>) -> bool + Send + Sync;

impl Visibility {
    /// For everyone.
    pub(crate) const OPEN: Self = Self { predicate: None };

    /// Says whether everyone may see it.
    pub(crate) fn is_open(&self) -> bool {
        self.predicate.is_none()
    }

    /// Says whether this caller may see it.
    pub(crate) fn allows(&self, principal: Option<&Principal>) -> bool {
        match &self.predicate {
            None => true,
            Some(predicate) => catch_unwind(AssertUnwindSafe(|| predicate(principal)))
                // Whoever cannot be judged is not let in.
                .unwrap_or_else(|panic| {
                    incident::panicked(&*panic);
                    false
                }),
        }
    }

    /// Shows it only to those whom `predicate` lets pass, as everything before it did.
    fn narrow(&mut self, predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static) {
        self.predicate = Some(match self.predicate.take() {
            None => Arc::new(predicate),
            Some(earlier) => Arc::new(move |principal| earlier(principal) && predicate(principal)),
        });
    }
}

impl Tool {
    /// Offers the tool only to callers of whom `predicate` says so; for all others it does not exist.
    ///
    /// It sees who is asking, as far as the transport could tell, and nothing else of the request: what a caller may
    /// see is the same each time it looks. Said twice, both must agree. A list with such items is sent with a private
    /// cache scope.
    ///
    /// ```
    /// use turnbuckle_server::{Tool, ToolError};
    ///
    /// let restart = Tool::new("restart", async || Ok::<_, ToolError>("restarted".to_owned()))
    ///     .visible_to(|principal| principal.is_some_and(|who| who.scopes.contains("admin")));
    /// ```
    #[must_use]
    pub fn visible_to(
        mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility.narrow(predicate);
        self
    }
}

impl Prompt {
    /// Offers the prompt only to callers of whom `predicate` says so, as [`Tool::visible_to`] does with tools.
    ///
    /// ```
    /// use turnbuckle_server::{Prompt, RequestError};
    ///
    /// let review = Prompt::new("review", async || Ok::<_, RequestError>("Review the salaries."))
    ///     .visible_to(|principal| principal.is_some_and(|who| who.subject == "ada"));
    /// ```
    #[must_use]
    pub fn visible_to(
        mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility.narrow(predicate);
        self
    }
}

impl Resource {
    /// Offers the resource only to callers of whom `predicate` says so, as [`Tool::visible_to`] does with tools.
    ///
    /// Nobody else can subscribe to it or hears of its updates. A template that describes the same URI is another way
    /// to read it, with a predicate of its own; it lets nobody hear of updates who may not see the resource.
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
        self.visibility.narrow(predicate);
        self
    }
}

impl ResourceTemplate {
    /// Offers these resources only to callers of whom `predicate` says so, as [`Resource::visible_to`] does with one.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// use turnbuckle_server::{Context, RequestError, ResourceTemplate};
    ///
    /// let files = ResourceTemplate::new(
    ///     "staff://{name}",
    ///     "file",
    ///     async |_: BTreeMap<String, String>, _: Context| Ok::<_, RequestError>("…"),
    /// )
    /// .visible_to(|principal| principal.is_some_and(|who| who.scopes.contains("payroll")));
    /// ```
    #[must_use]
    pub fn visible_to(
        mut self,
        predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility.narrow(predicate);
        self
    }
}
