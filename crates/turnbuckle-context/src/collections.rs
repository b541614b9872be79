//! Collections: what is kept of one branch of one project, under a name.

use crate::{ContextError, Library, Owner};

/// What is kept of one branch.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Collection {
    /// `owner_<id>/project_<id>/<branch>`, with `_` for each `/` of the branch as long as that names one branch only.
    pub name: String,
    /// The size of the vectors: as it was asked for, or as they are; 0 if there are none.
    pub vector_size: u64,
    /// Items and chunks of indexed files.
    pub point_count: u64,
}

/// What was removed with a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Removed {
    /// Checkpoints, remediations and skills.
    pub items: u64,
    /// Indexed files.
    pub files: u64,
    /// Chunks of those files.
    pub chunks: u64,
}

/// The name of the collection that a branch of a project has.
pub fn name(owner: &Owner, project_id: &str, branch: &str) -> String {
    format!("{owner}/project_{project_id}/{}", branch.replace('/', "_"))
}

/// Makes a collection, or changes the size of its vectors. Saving and indexing make them as well.
pub fn create(
    library: &Library,
    owner: &Owner,
    name: &str,
    vector_size: u64,
) -> Result<Collection, ContextError> {
    let _ = (library, owner, name, vector_size);
    Err(ContextError::refused("not built yet"))
}

/// Lists the collections of all projects of an owner, by name.
pub fn list(library: &Library, owner: &Owner) -> Result<Vec<Collection>, ContextError> {
    let _ = (library, owner);
    Err(ContextError::refused("not built yet"))
}

/// Finds one collection of an owner by its name.
pub fn find(
    library: &Library,
    owner: &Owner,
    name: &str,
) -> Result<Option<Collection>, ContextError> {
    let _ = (library, owner, name);
    Err(ContextError::refused("not built yet"))
}

/// Removes all that is kept of a branch. One of another owner is as unknown as one that never was.
pub fn delete(library: &Library, owner: &Owner, name: &str) -> Result<Removed, ContextError> {
    let _ = (library, owner, name);
    Err(ContextError::refused("not built yet"))
}
