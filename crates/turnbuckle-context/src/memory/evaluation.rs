//! Memory in single SQLite files, for measurements and tests.

use crate::{
    ContextError, Database, Owner, Redactor,
    memory::{ItemKind, ItemPage, MemoryHit, MemoryItem, MemoryQuery, NewItem, SaveOutcome},
    memory_store::{
        MemoryStore as _, OperationRecord, Partition, Scope, SqliteMemoryStore, block_on,
        sqlite::partitions::OpenDatabases,
    },
};

/// A store of open databases, and the partition of each.
fn store<'d>(
    databases: &'d [&'d Database],
) -> (SqliteMemoryStore<OpenDatabases<'d>>, Vec<Partition>) {
    let partitions = OpenDatabases::partitions(databases.len());
    (SqliteMemoryStore::new(OpenDatabases(databases)), partitions)
}

/// Saves an item.
pub fn save(
    database: &Database,
    redactor: &Redactor,
    new_item: NewItem,
) -> Result<SaveOutcome, ContextError> {
    let databases = [database];
    let (store, partitions) = store(&databases);
    block_on(super::save(&store, &partitions[0], redactor, new_item))
}

/// Returns matching items of several databases, best first.
pub fn search(
    databases: &[&Database],
    query: &MemoryQuery,
) -> Result<Vec<MemoryHit>, ContextError> {
    let (store, partitions) = store(databases);
    block_on(super::search(&store, &partitions, query))
}

/// Returns the newest items of a kind, after a cursor.
pub fn list(
    database: &Database,
    kind: ItemKind,
    limit: usize,
    after: Option<&str>,
) -> Result<ItemPage, ContextError> {
    let databases = [database];
    let (store, partitions) = store(&databases);
    block_on(super::list(&store, &partitions[0], kind, limit, after))
}

/// Returns the item with this id.
pub fn find(database: &Database, id: &str) -> Result<Option<MemoryItem>, ContextError> {
    let databases = [database];
    let (store, partitions) = store(&databases);
    let found = block_on(store.find(Scope::Partition(&partitions[0]), id))?;
    Ok(found.map(|(_, item)| item))
}

/// Returns the skill with this name.
pub fn find_skill(database: &Database, name: &str) -> Result<Option<MemoryItem>, ContextError> {
    let databases = [database];
    let (store, partitions) = store(&databases);
    Ok(block_on(super::find_skill(&store, &partitions[0], name))?)
}

/// Deletes an item. Returns whether it existed.
///
/// Traces of it remain in the file; see [`transfer::delete`](crate::transfer::delete) to remove them, too.
pub fn delete(database: &Database, id: &str) -> Result<bool, ContextError> {
    database.write(|db| Ok(db.execute("DELETE FROM item WHERE id = ?1", [id])? > 0))
}

/// Increments the usage count of items. Unknown ids are ignored.
pub fn record_use(database: &Database, ids: &[&str]) -> Result<(), ContextError> {
    let databases = [database];
    let (store, partitions) = store(&databases);
    Ok(block_on(store.count_use(&partitions[0], ids))?)
}

/// Returns the operation with this id.
pub fn find_operation(
    database: &Database,
    id: &str,
) -> Result<Option<OperationRecord>, ContextError> {
    let databases = [database];
    let (store, _) = store(&databases);
    Ok(block_on(
        store.find_operation(&Owner::for_user("evaluation"), id),
    )?)
}

/// Collections in a data directory.
pub mod collections {
    pub use crate::storage::collections::{Collection, RemovedCounts, name};
    use crate::{
        ContextError, DataDir, Owner,
        memory_store::{SqliteMemoryStore, block_on},
        storage::collections,
    };

    /// Creates a collection, or changes the size of its vectors.
    pub fn create(
        data_dir: &DataDir,
        owner: &Owner,
        name: &str,
        vector_size: u64,
    ) -> Result<Collection, ContextError> {
        let store = SqliteMemoryStore::new(data_dir);
        block_on(collections::Collections::new(&store, data_dir).create(owner, name, vector_size))
    }

    /// Returns the collections of all projects of an owner, ordered by name.
    pub fn list(data_dir: &DataDir, owner: &Owner) -> Result<Vec<Collection>, ContextError> {
        let store = SqliteMemoryStore::new(data_dir);
        block_on(collections::Collections::new(&store, data_dir).list(owner))
    }

    /// Returns the collection of an owner with this name.
    pub fn find(
        data_dir: &DataDir,
        owner: &Owner,
        name: &str,
    ) -> Result<Option<Collection>, ContextError> {
        let store = SqliteMemoryStore::new(data_dir);
        block_on(collections::Collections::new(&store, data_dir).find(owner, name))
    }

    /// Deletes all data of a branch. A collection of another owner is reported as unknown.
    pub fn delete(
        data_dir: &DataDir,
        owner: &Owner,
        name: &str,
    ) -> Result<RemovedCounts, ContextError> {
        let store = SqliteMemoryStore::new(data_dir);
        block_on(collections::Collections::new(&store, data_dir).delete(owner, name))
    }
}
