//! Lookup in all partitions of an owner: items and operations by id.

use crate::{
    ContextError, Owner,
    app_state::AppState,
    memory::{ItemKind, MemoryItem},
    memory_store::{OperationRecord, Scope},
};

/// An item and its project.
pub(crate) struct ItemRef {
    pub(crate) item: MemoryItem,
    /// The folder of its project; `None` for shared items.
    pub(crate) root: Option<String>,
}

impl AppState {
    /// Returns the item with this id. An item of another owner is reported as unknown.
    pub(crate) async fn find_item(&self, owner: &Owner, id: &str) -> Result<ItemRef, ContextError> {
        let kind = ItemKind::from_id(id).ok_or_else(|| unknown("item", id))?;
        let found = self.memory().find(Scope::Owner(owner), id).await?;
        let (partition, item) = found.ok_or_else(|| unknown(kind.as_str(), id))?;
        let root = self.memory().root(&partition).await?;
        let item = self.redact_item(item);
        Ok(ItemRef { item, root })
    }

    /// Returns the operation with this id.
    pub(crate) async fn find_operation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> Result<OperationRecord, ContextError> {
        let found = self.memory().find_operation(owner, id).await?;
        found.ok_or_else(|| unknown("operation", id))
    }

    /// Redacts a stored item again: the rules may have changed since it was saved.
    pub(crate) fn redact_item(&self, mut item: MemoryItem) -> MemoryItem {
        let texts = [&mut item.title, &mut item.body, &mut item.detail];
        for text in texts.into_iter().chain(&mut item.tags) {
            let redacted = self.redactor().redact(text);
            if !redacted.findings.is_empty() {
                *text = redacted.text.into_owned();
            }
        }
        for value in item.meta.values_mut() {
            self.redactor().redact_json(value);
        }
        item
    }
}

fn unknown(what: &str, id: &str) -> ContextError {
    ContextError::not_found(format!(
        "{what} `{}`",
        crate::mcp::display::one_line(id, 80)
    ))
}
