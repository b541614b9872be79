//! Lookup in all databases of an owner: projects by folder, items and operations by id.

use std::sync::Arc;

use super::{operations, operations::OperationRecord};
use crate::{
    ContextError, Database, Owner,
    app_state::AppState,
    memory,
    memory::{ItemKind, MemoryItem},
};

/// A project with data.
pub(crate) struct ProjectRef {
    pub(crate) id: String,
    /// The path of the folder when the project was created.
    pub(crate) root: String,
}

/// An item and its project.
pub(crate) struct ItemRef {
    pub(crate) item: MemoryItem,
    /// The folder of its project; `None` for shared items.
    pub(crate) root: Option<String>,
}

impl AppState {
    /// Returns the projects of an owner, ordered by folder.
    pub(crate) fn list_projects(&self, owner: &Owner) -> Result<Vec<ProjectRef>, ContextError> {
        let mut known = Vec::new();
        for id in self.data_dir().project_ids(owner)? {
            // A damaged or just deleted database does not hide the others.
            let Ok(Some(database)) = self.data_dir().open_project_by_id(owner, &id) else {
                continue;
            };
            if let Ok(Some(root)) = root(&database) {
                known.push(ProjectRef { id, root });
            }
        }
        known.sort_by(|one, other| one.root.cmp(&other.root));
        Ok(known)
    }

    /// Returns the item with this id. An item of another owner is reported as unknown.
    pub(crate) fn find_item(&self, owner: &Owner, id: &str) -> Result<ItemRef, ContextError> {
        let kind = ItemKind::from_id(id).ok_or_else(|| unknown("item", id))?;
        let found = self.search_all_databases(owner, |database| memory::find(database, id))?;
        let (item, database) = found.ok_or_else(|| unknown(kind.as_str(), id))?;
        let root = root(&database)?;
        let item = self.redact_item(item);
        Ok(ItemRef { item, root })
    }

    /// Returns the operation with this id.
    pub(crate) fn find_operation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> Result<OperationRecord, ContextError> {
        let found = self.search_all_databases(owner, |database| operations::find(database, id))?;
        let (operation, _) = found.ok_or_else(|| unknown("operation", id))?;
        Ok(operation)
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

    /// Searches the shared database, then those of the projects.
    fn search_all_databases<T>(
        &self,
        owner: &Owner,
        find: impl Fn(&Database) -> Result<Option<T>, ContextError>,
    ) -> Result<Option<(T, Arc<Database>)>, ContextError> {
        let mut last_error = None;
        let shared = self.data_dir().open_shared_if_exists(owner).transpose();
        let projects = self.data_dir().project_ids(owner)?;
        let projects = projects
            .iter()
            .filter_map(|id| self.data_dir().open_project_by_id(owner, id).transpose());
        for database in shared.into_iter().chain(projects) {
            match database.and_then(|database| Ok((find(&database)?, database))) {
                Ok((Some(found), database)) => return Ok(Some((found, database))),
                Ok((None, _)) => {}
                // Another database may contain it.
                Err(error) => last_error = Some(error),
            }
        }
        last_error.map_or(Ok(None), Err)
    }
}

/// Returns the folder of a project.
pub(crate) fn root(database: &Database) -> Result<Option<String>, ContextError> {
    database.read(|db| {
        let mut select = db.prepare_cached("SELECT value FROM about WHERE key = 'root'")?;
        let mut rows = select.query([])?;
        let root = rows.next()?.map(|row| row.get(0)).transpose()?;
        Ok(root)
    })
}

fn unknown(what: &str, id: &str) -> ContextError {
    ContextError::not_found(format!(
        "{what} `{}`",
        crate::mcp::display::one_line(id, 80)
    ))
}
