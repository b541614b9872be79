//! Visibility of tools, prompts and resources.
//!
//! Hidden items are unreachable: lists omit them, and requests for them are answered as if they did not exist.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ::http::Extensions;
use turnbuckle_protocol::{Principal, RpcError, types::Tool as ToolDefinition};

use crate::{Tool, catalog::EntryTable, request::error::report_panic};

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

/// Other definitions of the tools in `tools/list`, for some requests.
#[derive(Clone)]
pub(crate) struct ToolView {
    applies: Arc<dyn Fn(&Extensions) -> bool + Send + Sync>,
    edit: Arc<dyn Fn(&mut ToolDefinition) -> bool + Send + Sync>,
}

impl ToolView {
    pub(crate) fn new(
        applies: impl Fn(&Extensions) -> bool + Send + Sync + 'static,
        edit: impl Fn(&mut ToolDefinition) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            applies: Arc::new(applies),
            edit: Arc::new(edit),
        }
    }

    /// Returns the tools that a request lists, if the view applies to it.
    pub(crate) fn list(
        &self,
        tools: &EntryTable<Tool>,
        extensions: &Extensions,
    ) -> Result<Option<EntryTable<Tool>>, RpcError> {
        let list = || (self.applies)(extensions).then(|| self.edited(tools));
        catch_unwind(AssertUnwindSafe(list)).map_err(|panic| report_panic(&*panic))
    }

    fn edited(&self, tools: &EntryTable<Tool>) -> EntryTable<Tool> {
        let mut listed = EntryTable::default();
        for tool in tools.iter() {
            let mut tool = Tool::clone(tool);
            if (self.edit)(&mut tool.definition) {
                listed.put(tool);
            }
        }
        listed
    }
}
