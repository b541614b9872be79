//! Export, import, statistics and deletion of an owner's data.

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

/// A part of an owner's data.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DataSelection {
    /// All projects and the data that they share.
    #[default]
    Everything,
    /// One project, by id.
    Project(String),
    /// The data that projects share.
    Shared,
}

/// A database of an owner.
struct DatabaseRef {
    /// The id of the project; `None` for the shared database.
    project: Option<String>,
    /// The folder of the project, unless it cannot be read.
    root: Option<String>,
    database: Arc<Database>,
}

/// Opened databases, and errors for the others.
struct OpenedDatabases {
    /// The shared database comes last.
    databases: Vec<DatabaseRef>,
    damaged: Vec<ContextError>,
}

impl OpenedDatabases {
    /// Returns the error messages of the databases that could not be opened.
    fn messages(&self) -> Vec<String> {
        self.damaged.iter().map(ToString::to_string).collect()
    }
}

/// Opens the selected databases. If everything is selected, damaged databases are skipped.
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
            // It was deleted after the listing.
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
            // A damaged page does not hide the other data.
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
