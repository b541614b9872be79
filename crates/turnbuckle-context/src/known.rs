//! What an owner has: projects by their folders, and anything by its id.

use std::sync::Arc;

use crate::desk::Desk;
use crate::memory::{self, Item, Kind};
use crate::operations::{self, Operation};
use crate::{ContextError, Database, Owner};

/// A project that something is kept of.
pub(crate) struct KnownProject {
    pub(crate) id: String,
    /// Its folder, as it was called when something was first kept.
    pub(crate) root: String,
}

/// Where an item is kept, and the item.
pub(crate) struct KnownItem {
    pub(crate) item: Item,
    /// The folder of its project; nothing for what projects share.
    pub(crate) root: Option<String>,
}

impl Desk {
    /// The projects of an owner, by their folders.
    pub(crate) fn known_projects(&self, owner: &Owner) -> Result<Vec<KnownProject>, ContextError> {
        let mut known = Vec::new();
        for id in self.library().projects(owner)? {
            // One that is damaged or just removed hides no other.
            let Ok(Some(database)) = self.library().open_id(owner, &id) else {
                continue;
            };
            if let Ok(Some(root)) = root(&database) {
                known.push(KnownProject { id, root });
            }
        }
        known.sort_by(|one, other| one.root.cmp(&other.root));
        Ok(known)
    }

    /// Finds an item by its id. One of another owner is as unknown as one that never was.
    pub(crate) fn find_item(&self, owner: &Owner, id: &str) -> Result<KnownItem, ContextError> {
        let kind = Kind::of_id(id).ok_or_else(|| unknown("item", id))?;
        let found = self.look_everywhere(owner, |database| memory::find(database, id))?;
        let (item, database) = found.ok_or_else(|| unknown(kind.as_str(), id))?;
        let root = root(&database)?;
        let item = self.clean(item);
        Ok(KnownItem { item, root })
    }

    /// Finds an operation by its id.
    pub(crate) fn find_operation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> Result<Operation, ContextError> {
        let found = self.look_everywhere(owner, |database| operations::find(database, id))?;
        let (operation, _) = found.ok_or_else(|| unknown("operation", id))?;
        Ok(operation)
    }

    /// An item without secrets that were none to the rules of the day on which it was saved.
    pub(crate) fn clean(&self, mut item: Item) -> Item {
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

    /// Looks in what projects share, then in the projects.
    fn look_everywhere<T>(
        &self,
        owner: &Owner,
        look: impl Fn(&Database) -> Result<Option<T>, ContextError>,
    ) -> Result<Option<(T, Arc<Database>)>, ContextError> {
        let mut trouble = None;
        let shared = self.library().known_shared(owner).transpose();
        let projects = self.library().projects(owner)?;
        let projects = projects
            .iter()
            .filter_map(|id| self.library().open_id(owner, id).transpose());
        for database in shared.into_iter().chain(projects) {
            match database.and_then(|database| Ok((look(&database)?, database))) {
                Ok((Some(found), database)) => return Ok(Some((found, database))),
                Ok((None, _)) => {}
                // It may be in another file.
                Err(error) => trouble = Some(error),
            }
        }
        trouble.map_or(Ok(None), Err)
    }
}

/// The folder of a project.
pub(crate) fn root(database: &Database) -> Result<Option<String>, ContextError> {
    database.read(|db| {
        let mut select = db.prepare_cached("SELECT value FROM about WHERE key = 'root'")?;
        let mut rows = select.query([])?;
        let root = rows.next()?.map(|row| row.get(0)).transpose()?;
        Ok(root)
    })
}

fn unknown(what: &str, id: &str) -> ContextError {
    ContextError::missing(format!("{what} `{}`", crate::answer::one_line(id, 80)))
}
