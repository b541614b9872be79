//! A folder, indexed and searched as the context server does it.

use std::{ops::ControlFlow, path::Path};

use turnbuckle_context::{
    Database, Redactor,
    code_index::{IndexOptions, IndexTree, index},
    code_search::{CodeQuery, search},
};

use crate::failure::Failure;

/// A folder and its index, which is gone with this.
pub(crate) struct Indexed {
    db: Database,
    tree: IndexTree,
    _place: tempfile::TempDir,
}

impl Indexed {
    pub(crate) fn new(folder: &Path) -> Result<Self, Failure> {
        let place = tempfile::tempdir()?;
        let db = Database::open(place.path().join("index.db"))?;
        let folder = folder.canonicalize()?;
        let options = IndexOptions::default();
        let redactor = Redactor::standard();
        let mut watch = |_| ControlFlow::Continue(());
        let indexed = index(&db, &folder, "main", &options, redactor, &mut watch)?;
        Ok(Self {
            db,
            tree: indexed.tree,
            _place: place,
        })
    }

    /// The paths that are found, best first.
    pub(crate) fn search(&self, text: &str, limit: usize) -> Result<Vec<String>, Failure> {
        let mut query = CodeQuery::new(text);
        query.limit = limit;
        let hits = search(&self.db, &self.tree, &query)?;
        Ok(hits.into_iter().map(|hit| hit.path).collect())
    }
}
