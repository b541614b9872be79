//! Indexes and searches a folder like the context server.

use std::{ops::ControlFlow, path::Path};

use turnbuckle_context::{
    Database, Redactor,
    evaluation::{
        code_index::{IndexOptions, IndexTree, index},
        code_search::{CodeQuery, search},
    },
};

use crate::error::EvalError;

/// A folder and its temporary index.
pub(crate) struct IndexedFolder {
    db: Database,
    tree: IndexTree,
    _database_dir: tempfile::TempDir,
}

impl IndexedFolder {
    pub(crate) fn new(folder: &Path) -> Result<Self, EvalError> {
        let database_dir = tempfile::tempdir()?;
        let db = Database::open(database_dir.path().join("index.db"))?;
        let folder = folder.canonicalize()?;
        let options = IndexOptions::default();
        let redactor = Redactor::standard();
        let mut watch = |_| ControlFlow::Continue(());
        let indexed = index(&db, &folder, "main", &options, redactor, &mut watch)?;
        Ok(Self {
            db,
            tree: indexed.tree,
            _database_dir: database_dir,
        })
    }

    /// Returns the paths of matching files, best first.
    pub(crate) fn search(&self, text: &str, limit: usize) -> Result<Vec<String>, EvalError> {
        let mut query = CodeQuery::new(text);
        query.limit = limit;
        let hits = search(&self.db, &self.tree, &query)?;
        Ok(hits.into_iter().map(|hit| hit.path).collect())
    }
}
