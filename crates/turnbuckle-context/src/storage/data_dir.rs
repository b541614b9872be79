//! The data directory: a folder per owner, with a database per project and one that all projects share.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use super::{
    database::{create_private_dir, now},
    dir_handle::DirHandle,
    pending_delete,
    pending_delete::{DeleteMarker, PendingDelete},
};
use crate::{
    ContextError, Database, Owner, Project, code_index, mcp::display::sanitize,
    memory_store::Partition, storage::lock, transfer::delete,
};

/// Maximum number of cached open databases; the least recently used is closed first.
const MAX_OPEN_DATABASES: usize = 16;
/// Name of the database that an owner's projects share: skills, and remediations without a project.
const SHARED: &str = "shared";

/// The data of all owners, in one folder.
#[derive(Debug)]
pub struct DataDir {
    folder: PathBuf,
    roots: Option<Vec<AllowedRoot>>,
    open: Mutex<OpenDatabases>,
}

/// A folder that may contain projects.
#[derive(Debug)]
struct AllowedRoot {
    /// The canonical path.
    path: PathBuf,
    /// The folder as first opened. While the handle exists, no other folder gets the same inode.
    handle: Mutex<Option<DirHandle>>,
}

#[derive(Debug, Default)]
struct OpenDatabases {
    /// With the number of the last use.
    databases: HashMap<PathBuf, (u64, Arc<Database>)>,
    uses: u64,
    /// The number of the last use before the last [`close_unused`](DataDir::close_unused).
    checked_uses: u64,
}

impl DataDir {
    /// Creates a handle to the data in this folder. Files are created and read on first use.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            roots: None,
            open: Mutex::default(),
        }
    }

    /// Accepts only projects in these folders. By default every folder that this process can read is accepted.
    ///
    /// Links in these paths are resolved once, in this call.
    #[must_use]
    pub fn restrict_to(mut self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        self.roots = Some(roots.into_iter().map(AllowedRoot::new).collect());
        self
    }

    /// Returns whether the files in a folder, given by its canonical path, may be read.
    pub fn allows(&self, folder: &Path) -> bool {
        let is_within =
            |roots: &Vec<AllowedRoot>| roots.iter().any(|root| folder.starts_with(&root.path));
        self.roots.as_ref().is_none_or(is_within)
    }

    /// Opens an allowed folder, given by its canonical path. Links are not followed, so concurrent changes of the path cannot
    /// lead to another folder.
    pub(crate) fn open_folder(&self, path: &Path) -> Result<DirHandle, ContextError> {
        let Some(roots) = &self.roots else {
            return code_index::open_dir(path);
        };
        let within = roots
            .iter()
            .find_map(|root| Some((root, path.strip_prefix(&root.path).ok()?)));
        let Some((root, below)) = within else {
            return Err(not_allowed_error(path));
        };
        let opened = root.open()?.open_relative(below);
        opened.map_err(|error| code_index::open_error(path, error))
    }

    /// Returns whether only projects in some folders are accepted.
    pub fn is_restricted(&self) -> bool {
        self.roots.is_some()
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder and checks that it is writable. A read-only folder is accepted if it contains data.
    pub fn prepare(&self) -> Result<(), ContextError> {
        create_private_dir(&self.folder)?;
        let probe = self.folder.join(format!(".probe-{}", std::process::id()));
        let done = std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe));
        match done {
            Err(error) if self.has_data() => {
                tracing::warn!(%error, "the data folder is not writable: saving will fail");
                Ok(())
            }
            done => done.map_err(|error| ContextError::file(&self.folder, error)),
        }
    }

    fn has_data(&self) -> bool {
        let owners = std::fs::read_dir(&self.folder).into_iter().flatten();
        let mut owners = owners.flatten().map(|owner| owner.path());
        owners.any(|owner| owner.is_dir())
    }

    /// Returns the project of a folder. A deleted folder is accepted if the project has data.
    pub fn project(&self, owner: &Owner, path: &str) -> Result<Project, ContextError> {
        // A key does not name a folder, so that none has to be allowed.
        if let Some(key) = Project::key_in(path) {
            return Project::from_key(key);
        }
        let found = Project::find(path).or_else(|error| match Project::from_stored(path) {
            Ok(stored) if self.database_path(owner, stored.id()).exists() => Ok(stored),
            _ => Err(error),
        });
        match found {
            Ok(project) if self.allows(project.folder()) => Ok(project),
            // The reason is returned only for allowed folders, so that callers cannot probe for others.
            Err(error) if self.allows(Path::new(path)) => Err(error),
            _ => Err(not_allowed_error(Path::new(path))),
        }
    }

    /// Opens the database of a project, creating it if needed.
    pub fn open_project(
        &self,
        owner: &Owner,
        project: &Project,
    ) -> Result<Arc<Database>, ContextError> {
        let root = project.root().to_string_lossy();
        self.open_project_at(owner, project.id(), &root)
    }

    /// Opens the database of a project by id, creating it if needed, and stores the folder if it has none.
    pub(crate) fn open_project_at(
        &self,
        owner: &Owner,
        id: &str,
        root: &str,
    ) -> Result<Arc<Database>, ContextError> {
        if !is_id(id) {
            return Err(ContextError::invalid(
                "the id of a project has 16 hexadecimal digits",
            ));
        }
        let database = self.open_database(self.database_path(owner, id))?;
        let has_root = database.read(|db| {
            Ok(
                db.query_row("SELECT count(*) FROM about WHERE key = 'root'", [], |row| {
                    row.get(0)
                })?,
            )
        })?;
        if !matches!(has_root, 1_i64) {
            database.write(|db| {
                let insert = "INSERT OR IGNORE INTO about VALUES ('root', ?1), ('created', ?2)";
                Ok(db.execute(insert, [root, &now().to_string()])?)
            })?;
        }
        Ok(database)
    }

    /// Opens the database of a project by id, if it exists.
    pub fn open_project_by_id(
        &self,
        owner: &Owner,
        id: &str,
    ) -> Result<Option<Arc<Database>>, ContextError> {
        if is_id(id) {
            self.open_existing(self.database_path(owner, id))
        } else {
            Ok(None)
        }
    }

    /// Opens the database that an owner's projects share, creating it if needed.
    pub fn open_shared(&self, owner: &Owner) -> Result<Arc<Database>, ContextError> {
        self.open_database(self.database_path(owner, SHARED))
    }

    /// Opens the database that an owner's projects share, if it exists.
    pub fn open_shared_if_exists(
        &self,
        owner: &Owner,
    ) -> Result<Option<Arc<Database>>, ContextError> {
        self.open_existing(self.database_path(owner, SHARED))
    }

    /// Returns the number of open databases.
    #[cfg(test)]
    pub(crate) fn open_files(&self) -> usize {
        self.lock().databases.len()
    }

    /// Closes the databases that were not used since the last call: each open one takes some megabytes of memory. Returns
    /// whether others are open.
    pub(crate) fn close_unused(&self) -> bool {
        let (unused, has_others): (Vec<_>, _) = {
            let open = &mut *self.lock();
            let is_unused = |last_use: u64, database: &Arc<Database>| {
                last_use <= open.checked_uses && Arc::strong_count(database) == 1
            };
            let unused = open
                .databases
                .extract_if(|_, (last_use, database)| is_unused(*last_use, database))
                .collect();
            open.checked_uses = open.uses;
            (unused, !open.databases.is_empty())
        };
        // Close after releasing the lock, because closing writes to the disk.
        drop(unused);
        has_others
    }

    /// Returns the ids of all projects with data, in no particular order.
    pub fn project_ids(&self, owner: &Owner) -> Result<Vec<String>, ContextError> {
        let folder = self.folder.join(owner.id());
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            done => done.map_err(|error| ContextError::file(&folder, error))?,
        };
        let id = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let id = name.strip_suffix(".db")?;
            is_id(id).then(|| id.to_owned())
        };
        Ok(entries.filter_map(id).collect())
    }

    /// Returns the paths of all databases of an owner, in no particular order.
    pub(crate) fn database_paths(&self, owner: &Owner) -> Result<Vec<PathBuf>, ContextError> {
        let projects = self.project_ids(owner)?;
        let names = projects.iter().map(String::as_str);
        let shared = self.has_shared(owner).then_some(SHARED);
        let files = names
            .chain(shared)
            .map(|name| self.database_path(owner, name));
        Ok(files.collect())
    }

    /// Returns the database of a file if it is open, without counting as a use.
    pub(crate) fn already_open(&self, file: &Path) -> Option<Arc<Database>> {
        let database = self.lock().databases.get(file)?.1.clone();
        database.is_current().then_some(database)
    }

    /// Closes and deletes the database of a project. Returns whether it existed.
    pub fn delete_project(&self, owner: &Owner, id: &str) -> Result<bool, ContextError> {
        Ok(self.delete_databases(owner, &[id.to_owned()], false)? > 0)
    }

    /// Closes and deletes the database that an owner's projects share. Returns whether it existed.
    pub fn delete_shared(&self, owner: &Owner) -> Result<bool, ContextError> {
        Ok(self.delete_databases(owner, &[], true)? > 0)
    }

    /// Closes and deletes databases and returns how many existed. If the process dies, another one finishes the deletion.
    pub(crate) fn delete_databases(
        &self,
        owner: &Owner,
        projects: &[String],
        shared: bool,
    ) -> Result<u64, ContextError> {
        let ids = projects.iter().map(String::as_str).filter(|id| is_id(id));
        let names = ids.chain(shared.then_some(SHARED));
        let mut started = Vec::new();
        for file in names.map(|name| self.database_path(owner, name)) {
            self.finish_pending_removal(&file)?;
            // Do not open the database, so that a damaged one can be deleted, too.
            if file.exists() {
                let earlier = DeleteMarker::take_abandoned(&file)?;
                started.push((
                    DeleteMarker::write(&file, PendingDelete::File, earlier)?,
                    file,
                ));
            }
        }
        let count = started.len() as u64;
        for (marker, file) in started {
            self.remove_file(&file)?;
            marker.finish()?;
        }
        Ok(count)
    }

    /// Deletes the folder of an owner with all remaining files. Returns `false` if a running import keeps its staging file.
    pub(crate) fn delete_owner(&self, owner: &Owner) -> Result<bool, ContextError> {
        let folder = self.folder.join(owner.id());
        let all_removed = delete::remove_leftovers(&folder);
        let failed = |error| ContextError::file(&folder, error);
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if delete::is_staging(&name) {
                continue;
            }
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ContextError::file(path, error));
                }
                _ => {}
            }
        }
        if all_removed {
            std::fs::remove_dir(&folder).map_err(failed).map(|()| true)
        } else {
            Ok(false)
        }
    }

    /// Finishes deletions of an owner's data that a dead process started.
    pub(crate) fn finish_pending_deletes(&self, owner: &Owner) -> Result<(), ContextError> {
        for file in pending_delete::marked_databases(&self.folder.join(owner.id())) {
            if let Some(database) = self.open_existing(file)? {
                pending_delete::finish_abandoned(&database)?;
            }
        }
        Ok(())
    }

    fn finish_pending_removal(&self, file: &Path) -> Result<(), ContextError> {
        finish_pending_removal(&mut self.lock(), file)
    }

    /// Opens a database if it exists.
    fn open_existing(&self, file: PathBuf) -> Result<Option<Arc<Database>>, ContextError> {
        let is_open = self.lock().databases.contains_key(&file);
        if !is_open {
            self.finish_pending_removal(&file)?;
        }
        file.exists().then(|| self.open_database(file)).transpose()
    }

    /// Returns whether the shared database of an owner exists.
    pub(crate) fn has_shared(&self, owner: &Owner) -> bool {
        self.database_path(owner, SHARED).exists()
    }

    /// Returns the path of the database of a partition.
    pub(crate) fn partition_path(&self, partition: &Partition) -> PathBuf {
        self.database_path(partition.owner(), partition.project_id().unwrap_or(SHARED))
    }

    fn remove_file(&self, file: &Path) -> Result<(), ContextError> {
        remove_file(&mut self.lock(), file)
    }

    fn database_path(&self, owner: &Owner, name: &str) -> PathBuf {
        self.folder.join(owner.id()).join(format!("{name}.db"))
    }

    fn open_database(&self, file: PathBuf) -> Result<Arc<Database>, ContextError> {
        // Hold the lock while opening: two callers must not open one file twice, and opening takes little time.
        let mut open = self.lock();
        open.uses += 1;
        let used = open.uses;
        if let Some(cached) = open.databases.get_mut(&file) {
            // Another process may have replaced the file.
            if cached.1.is_current() {
                cached.0 = used;
                return Ok(cached.1.clone());
            }
            open.databases.remove(&file);
        }
        finish_pending_removal(&mut open, &file)?;
        let database = Arc::new(Database::open(&file)?);
        if database.is_read_only() {
            // Not cached: the file may be writable the next time.
            return Ok(database);
        }
        if open.databases.len() >= MAX_OPEN_DATABASES {
            let oldest = open.databases.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(file, _)| file.clone()) {
                open.databases.remove(&oldest);
            }
        }
        open.databases.insert(file, (used, database.clone()));
        drop(open);
        if let Err(error) = pending_delete::finish_abandoned(&database) {
            // The data is usable; the next process that opens the file tries again.
            tracing::warn!(%error, "a pending deletion is not complete");
        }
        Ok(database)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenDatabases> {
        lock(&self.open)
    }
}

impl AllowedRoot {
    fn new(path: PathBuf) -> Self {
        let canonical = path.canonicalize();
        let opened = canonical.as_ref().map(|path| DirHandle::open(path));
        // Keep the handle only if the path still leads to the same folder.
        let handle = opened.ok().and_then(Result::ok);
        let handle = handle.filter(|folder| folder.is_at(&path));
        Self {
            path: canonical.unwrap_or(path),
            handle: Mutex::new(handle),
        }
    }

    /// Opens the folder. A folder that was deleted and created again is accepted; one that replaced it is not.
    fn open(&self) -> Result<DirHandle, ContextError> {
        let now = DirHandle::open(&self.path)
            .map_err(|error| code_index::open_error(&self.path, error))?;
        let mut handle = lock(&self.handle);
        if handle.as_ref().is_some_and(|handle| handle.is_same(&now)) {
            return Ok(now);
        }
        if handle.as_ref().is_some_and(|handle| !handle.is_removed()) {
            return Err(ContextError::invalid(
                "the folder that this server may use was replaced by another one; tell the user to restart the server",
            ));
        }
        let copy = now.open_relative(Path::new(""));
        *handle = Some(copy.map_err(|error| ContextError::file(&self.path, error))?);
        Ok(now)
    }
}

fn not_allowed_error(path: &Path) -> ContextError {
    ContextError::invalid(format!(
        "`{}` is in none of the folders that this server may use; pass a path in an allowed folder",
        sanitize(&path.to_string_lossy())
    ))
}

/// Deletes a database if a dead process started to delete it.
fn finish_pending_removal(open: &mut OpenDatabases, file: &Path) -> Result<(), ContextError> {
    if let Some(marker) = DeleteMarker::take_abandoned(file)?
        && marker.deletes_file()
    {
        remove_file(open, file)?;
        marker.finish()?;
    }
    Ok(())
}

fn remove_file(open: &mut OpenDatabases, file: &Path) -> Result<(), ContextError> {
    open.databases.remove(file);
    // Remove the database last: a new one must not lose its side files.
    for suffix in ["-wal", "-shm", ""] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(ContextError::file(PathBuf::from(name), error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether the text can be the id of a project, which is also a file name.
fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_see_only_their_own_projects() {
        let (data, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data_dir = DataDir::new(data.path());
        let (ada, bob) = (Owner::for_user("ada"), Owner::for_user("bob"));
        let project = data_dir
            .project(&ada, one.path().to_str().unwrap())
            .unwrap();
        data_dir.open_project(&ada, &project).unwrap();
        assert_eq!(data_dir.project_ids(&ada).unwrap(), [project.id()]);
        assert!(data_dir.project_ids(&bob).unwrap().is_empty());
        assert!(
            data_dir
                .open_project_by_id(&bob, project.id())
                .unwrap()
                .is_none()
        );
        assert!(
            data_dir
                .open_project_by_id(&ada, "../../etc/passwd")
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_project_with_a_deleted_folder_is_still_found() {
        let (data, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data_dir = DataDir::new(data.path());
        let ada = Owner::for_user("ada");
        let path = one
            .path()
            .canonicalize()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let project = data_dir.project(&ada, &path).unwrap();
        data_dir.open_project(&ada, &project).unwrap();
        drop(one);
        assert_eq!(data_dir.project(&ada, &path).unwrap().id(), project.id());
        assert!(data_dir.project(&Owner::for_user("bob"), &path).is_err());
    }

    #[test]
    fn only_allowed_folders_are_used() {
        let (data, inside, outside) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let data_dir = DataDir::new(data.path()).restrict_to([inside.path().to_owned()]);
        let ada = Owner::for_user("ada");
        assert!(
            data_dir
                .project(&ada, inside.path().to_str().unwrap())
                .is_ok()
        );
        let error = data_dir
            .project(&ada, outside.path().to_str().unwrap())
            .unwrap_err();
        assert!(error.to_string().contains("none of the folders"));
        let message = |path: &Path| {
            let path = path.to_str().unwrap();
            let error = data_dir.project(&ada, path).unwrap_err().to_string();
            error.replace(path, "it")
        };
        let nowhere = outside.path().join("nowhere");
        assert_eq!(
            message(&nowhere),
            message(outside.path()),
            "the error does not reveal which folders exist"
        );
        let inside = inside.path().canonicalize().unwrap();
        assert!(message(&inside.join("nowhere")).contains("existing folder"));
    }

    #[cfg(unix)]
    #[test]
    fn a_database_replaced_by_another_process_is_opened_again() {
        let (data, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (here, there) = (DataDir::new(data.path()), DataDir::new(data.path()));
        let ada = Owner::for_user("ada");
        let project = here.project(&ada, one.path().to_str().unwrap()).unwrap();
        let old = here.open_project(&ada, &project).unwrap();
        assert!(there.delete_project(&ada, project.id()).unwrap());
        let new = there.open_project(&ada, &project).unwrap();

        let insert = "INSERT INTO about VALUES ('note', 'kept')";
        let lost = old.write(|db| Ok(db.execute(insert, [])?)).unwrap_err();
        assert!(
            lost.to_string().contains("deleted by another process"),
            "{lost}"
        );
        let current = here.open_project(&ada, &project).unwrap();
        current.write(|db| Ok(db.execute(insert, [])?)).unwrap();
        drop((old, current));

        let count = "SELECT count(*) FROM about WHERE key = 'note'";
        let count = new.read(|db| Ok(db.query_row(count, [], |row| row.get::<_, i64>(0))?));
        assert_eq!(count.unwrap(), 1);
    }

    #[test]
    fn a_file_with_another_name_is_not_a_project() {
        let data = tempfile::tempdir().unwrap();
        let (data_dir, ada) = (DataDir::new(data.path()), Owner::for_user("ada"));
        data_dir.open_shared(&ada).unwrap();
        let copy = data.path().join(ada.id()).join("copy of shared.db");
        std::fs::write(copy, "").unwrap();
        assert!(data_dir.project_ids(&ada).unwrap().is_empty());
    }

    #[test]
    fn a_deleted_project_is_removed_from_the_disk() {
        let (data, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data_dir = DataDir::new(data.path());
        let ada = Owner::for_user("ada");
        let project = data_dir
            .project(&ada, one.path().to_str().unwrap())
            .unwrap();
        data_dir.open_project(&ada, &project).unwrap();
        assert!(data_dir.delete_project(&ada, project.id()).unwrap());
        assert!(!data_dir.delete_project(&ada, project.id()).unwrap());
        let left = std::fs::read_dir(data.path().join(ada.id())).unwrap();
        assert_eq!(left.count(), 0);
    }
}
