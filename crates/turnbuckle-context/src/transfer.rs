//! What people do with their data: take it along, bring it back, look at how much it is, have it forgotten.

pub(crate) mod delete;
mod export;
mod import;
mod record;
mod stats;

use std::sync::Arc;

use rusqlite::OptionalExtension as _;

pub use self::{
    delete::{DeleteReport, DeleteRequest, delete},
    export::{ExportReport, export},
    import::{BadLine, ImportOptions, ImportReport, import},
    stats::{DataStats, DatabaseStats, stats},
};
use crate::{ContextError, DataDir, Database, DatabaseErrorKind, Owner};

/// Which part of an owner's data is meant.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DataSelection {
    /// All projects and what they share.
    #[default]
    Everything,
    /// One project, by its id.
    Project(String),
    /// What projects share.
    Shared,
}

/// A database of an owner.
struct DatabaseRef {
    /// The id of the project; nothing for what projects share.
    project: Option<String>,
    /// The folder of the project, unless that cannot be read.
    root: Option<String>,
    database: Arc<Database>,
}

/// What could be opened, and what is wrong with the rest.
struct OpenedDatabases {
    /// What is shared comes last.
    databases: Vec<DatabaseRef>,
    damaged: Vec<ContextError>,
}

impl OpenedDatabases {
    /// What is wrong with each file that could not be read.
    fn messages(&self) -> Vec<String> {
        self.damaged.iter().map(ToString::to_string).collect()
    }
}

/// The databases of a part. If that is everything, one that is damaged hides no other.
fn open_databases(
    data_dir: &DataDir,
    owner: &Owner,
    selection: &DataSelection,
) -> Result<OpenedDatabases, ContextError> {
    let mut ids = match selection {
        DataSelection::Everything => data_dir.project_ids(owner)?,
        DataSelection::Project(id) => vec![id.clone()],
        DataSelection::Shared => Vec::new(),
    };
    ids.sort();
    let mut ids: Vec<Option<String>> = ids.into_iter().map(Some).collect();
    if !matches!(selection, DataSelection::Project(_)) && data_dir.has_shared(owner) {
        ids.push(None);
    }
    let mut found = OpenedDatabases {
        databases: Vec::new(),
        damaged: Vec::new(),
    };
    for id in ids {
        match open_database(data_dir, owner, id) {
            Ok(database) => found.databases.push(database),
            Err(error) if *selection != DataSelection::Everything => return Err(error),
            // It was removed since we looked.
            Err(ContextError::NotFound(_)) => {}
            Err(error) => found.damaged.push(error),
        }
    }
    Ok(found)
}

fn open_database(
    data_dir: &DataDir,
    owner: &Owner,
    project: Option<String>,
) -> Result<DatabaseRef, ContextError> {
    let Some(id) = project else {
        return Ok(DatabaseRef {
            project: None,
            root: None,
            database: data_dir.open_shared(owner)?,
        });
    };
    let database = data_dir.open_project_by_id(owner, &id)?;
    let database = database.ok_or_else(|| ContextError::not_found(format!("project `{id}`")))?;
    Ok(DatabaseRef {
        root: match project_root(&database) {
            // One damaged page hides nothing else.
            Err(ContextError::Database {
                kind: DatabaseErrorKind::Corrupt,
                ..
            }) => None,
            root => Some(root?),
        },
        project: Some(id),
        database,
    })
}

fn project_root(database: &Database) -> Result<String, ContextError> {
    let select = "SELECT value FROM about WHERE key = 'root'";
    let root = database.read(|db| {
        let root = db.query_row(select, [], |row| row.get(0));
        Ok(root.optional()?)
    })?;
    Ok(root.unwrap_or_default())
}
