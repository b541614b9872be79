//! All that is kept: a folder per owner, in it a file per project and one that projects share.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    database::{create_private_dir, now},
    dir_handle::DirHandle,
    pending_delete,
    pending_delete::{DeleteMarker, PendingDelete},
};
use crate::{
    ContextError, Database, Owner, Project, code_index, mcp::display::sanitize, transfer::delete,
};

/// Files that stay open; the one used longest ago is closed first.
const MAX_OPEN_DATABASES: usize = 16;
/// What an owner shares between projects: skills, and remediations without a project.
const SHARED: &str = "shared";

/// All that is kept below one folder.
#[derive(Debug)]
pub struct DataDir {
    folder: PathBuf,
    roots: Option<Vec<AllowedRoot>>,
    open: Mutex<OpenDatabases>,
}

/// A folder that projects may be in.
#[derive(Debug)]
struct AllowedRoot {
    /// Canonical.
    path: PathBuf,
    /// The folder as it was when it was first opened. While it is held, no other one has its number.
    handle: Mutex<Option<DirHandle>>,
}

#[derive(Debug, Default)]
struct OpenDatabases {
    databases: HashMap<PathBuf, (u64, Arc<Database>)>,
    uses: u64,
}

impl DataDir {
    /// Keeps everything below this folder. Nothing is made or read before it is needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            roots: None,
            open: Mutex::default(),
        }
    }

    /// Accepts only projects in these folders. By default every folder that this process can read is accepted.
    ///
    /// A folder may be given by a path with links in it, which are followed now and never again.
    #[must_use]
    pub fn restrict_to(mut self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        self.roots = Some(roots.into_iter().map(AllowedRoot::new).collect());
        self
    }

    /// Says whether what is in a folder, given by its canonical path, may be read.
    pub fn allows(&self, folder: &Path) -> bool {
        let is_within =
            |roots: &Vec<AllowedRoot>| roots.iter().any(|root| folder.starts_with(&root.path));
        self.roots.as_ref().is_none_or(is_within)
    }

    /// Opens a folder that may be read, given by its canonical path. What a link leads to is not opened, and nothing that
    /// lies elsewhere, whatever happens to the path meanwhile.
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

    /// Says whether only projects in some folders are accepted.
    pub fn is_restricted(&self) -> bool {
        self.roots.is_some()
    }

    /// The folder that everything is below.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder, and sees whether something can be kept in it. One that cannot be written is accepted if something
    /// is kept in it: that can be read.
    pub fn prepare(&self) -> Result<(), ContextError> {
        create_private_dir(&self.folder)?;
        let probe = self.folder.join(format!(".probe-{}", std::process::id()));
        let done = std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe));
        match done {
            Err(error) if self.has_data() => {
                tracing::warn!(%error, "the data folder cannot be written: nothing will be saved");
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

    /// Finds the project of a folder. One that is gone is found if something is kept of it.
    pub fn project(&self, owner: &Owner, path: &str) -> Result<Project, ContextError> {
        let found = Project::find(path).or_else(|error| match Project::from_stored(path) {
            Ok(gone) if self.database_path(owner, gone.id()).exists() => Ok(gone),
            _ => Err(error),
        });
        match found {
            Ok(project) if self.allows(project.folder()) => Ok(project),
            // What is wrong with a folder is told only to who may know that it is there.
            Err(error) if self.allows(Path::new(path)) => Err(error),
            _ => Err(not_allowed_error(Path::new(path))),
        }
    }

    /// Opens what is kept of a project, and begins it if there is nothing.
    pub fn open_project(
        &self,
        owner: &Owner,
        project: &Project,
    ) -> Result<Arc<Database>, ContextError> {
        let database = self.open_database(self.database_path(owner, project.id()))?;
        let root = project.root().to_string_lossy();
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
                Ok(db.execute(insert, [&*root, &now().to_string()])?)
            })?;
        }
        Ok(database)
    }

    /// Opens what is kept of a project by its id, if anything is.
    pub fn open_project_by_id(
        &self,
        owner: &Owner,
        id: &str,
    ) -> Result<Option<Arc<Database>>, ContextError> {
        match is_id(id) {
            true => self.open_existing(self.database_path(owner, id)),
            false => Ok(None),
        }
    }

    /// Opens what an owner shares between projects.
    pub fn open_shared(&self, owner: &Owner) -> Result<Arc<Database>, ContextError> {
        self.open_database(self.database_path(owner, SHARED))
    }

    /// Opens what an owner shares between projects, if anything is: who only looks makes no files.
    pub fn open_shared_if_exists(
        &self,
        owner: &Owner,
    ) -> Result<Option<Arc<Database>>, ContextError> {
        self.open_existing(self.database_path(owner, SHARED))
    }

    /// How many files are open.
    #[cfg(test)]
    pub(crate) fn open_files(&self) -> usize {
        self.lock().databases.len()
    }

    /// Closes databases that are not in use: each file that is open keeps some megabytes of it in memory.
    pub(crate) fn close_idle(&self) {
        let idle: Vec<_> = {
            let mut open = self.lock();
            let is_idle = |database: &Arc<Database>| Arc::strong_count(database) == 1;
            open.databases
                .extract_if(|_, (_, database)| is_idle(database))
                .collect()
        };
        // Closing writes to the disk, which others need not wait for.
        drop(idle);
    }

    /// The ids of the projects that something is kept of, in no order.
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

    /// The files of all databases of an owner, in no order.
    pub(crate) fn database_paths(&self, owner: &Owner) -> Result<Vec<PathBuf>, ContextError> {
        let projects = self.project_ids(owner)?;
        let names = projects.iter().map(String::as_str);
        let shared = self.has_shared(owner).then_some(SHARED);
        let files = names
            .chain(shared)
            .map(|name| self.database_path(owner, name));
        Ok(files.collect())
    }

    /// Returns the database of a file if it is open. That does not count as a use of it.
    pub(crate) fn already_open(&self, file: &Path) -> Option<Arc<Database>> {
        let database = self.lock().databases.get(file)?.1.clone();
        database.is_current().then_some(database)
    }

    /// Closes a project's file and removes it with everything in it. Says whether there was one.
    pub fn delete_project(&self, owner: &Owner, id: &str) -> Result<bool, ContextError> {
        Ok(self.delete_databases(owner, &[id.to_owned()], false)? > 0)
    }

    /// Closes and removes what an owner shares between projects. Says whether there was anything.
    pub fn delete_shared(&self, owner: &Owner) -> Result<bool, ContextError> {
        Ok(self.delete_databases(owner, &[], true)? > 0)
    }

    /// Closes and removes files, and returns how many there were. If the process dies meanwhile, another one goes on with all.
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
            // It is not opened: one that is damaged can be removed too.
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

    /// Removes the folder of an owner, with whatever is left in it. Returns whether all is gone: an import that runs keeps its
    /// staging file.
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
            let removed = match path.is_dir() {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ContextError::file(path, error));
                }
                _ => {}
            }
        }
        match all_removed {
            true => std::fs::remove_dir(&folder).map_err(failed).map(|()| true),
            false => Ok(false),
        }
    }

    /// Finishes what a dead process began to forget of an owner.
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

    /// Opens a file if it is there.
    fn open_existing(&self, file: PathBuf) -> Result<Option<Arc<Database>>, ContextError> {
        let is_open = self.lock().databases.contains_key(&file);
        if !is_open {
            self.finish_pending_removal(&file)?;
        }
        file.exists().then(|| self.open_database(file)).transpose()
    }

    /// Whether an owner shares anything between projects.
    pub(crate) fn has_shared(&self, owner: &Owner) -> bool {
        self.database_path(owner, SHARED).exists()
    }

    fn remove_file(&self, file: &Path) -> Result<(), ContextError> {
        remove_file(&mut self.lock(), file)
    }

    fn database_path(&self, owner: &Owner, name: &str) -> PathBuf {
        self.folder.join(owner.id()).join(format!("{name}.db"))
    }

    fn open_database(&self, file: PathBuf) -> Result<Arc<Database>, ContextError> {
        // Opening waits for other processes at most for a moment, and two callers must not open one file twice.
        let mut open = self.lock();
        open.uses += 1;
        let used = open.uses;
        if let Some(cached) = open.databases.get_mut(&file) {
            // Somebody else may have removed the file, and made another one.
            if cached.1.is_current() {
                cached.0 = used;
                return Ok(cached.1.clone());
            }
            open.databases.remove(&file);
        }
        finish_pending_removal(&mut open, &file)?;
        let database = Arc::new(Database::open(&file)?);
        if database.is_read_only() {
            // The next one tries whether it can be written by then.
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
            // What is kept can be used; the next one who opens the file tries again.
            tracing::warn!(%error, "what was to be forgotten is not deleted completely");
        }
        Ok(database)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenDatabases> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AllowedRoot {
    fn new(path: PathBuf) -> Self {
        let canonical = path.canonicalize();
        let opened = canonical.as_ref().map(|path| DirHandle::open(path));
        // It is the folder that the user named only if no other one took its place meanwhile.
        let handle = opened.ok().and_then(Result::ok);
        let handle = handle.filter(|folder| folder.is_at(&path));
        Self {
            path: canonical.unwrap_or(path),
            handle: Mutex::new(handle),
        }
    }

    /// Opens the folder. One that was removed and made again is accepted, one that took its place is not.
    fn open(&self) -> Result<DirHandle, ContextError> {
        let now = DirHandle::open(&self.path)
            .map_err(|error| code_index::open_error(&self.path, error))?;
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if handle.as_ref().is_some_and(|handle| handle.is_same(&now)) {
            return Ok(now);
        }
        if handle.as_ref().is_some_and(|handle| !handle.is_removed()) {
            return Err(ContextError::invalid(
                "another folder has taken the place of the one that this server may use; tell the user to start the server again",
            ));
        }
        let copy = now.open_relative(Path::new(""));
        *handle = Some(copy.map_err(|error| ContextError::file(&self.path, error))?);
        Ok(now)
    }
}

fn not_allowed_error(path: &Path) -> ContextError {
    ContextError::invalid(format!(
        "`{}` is in none of the folders that this server may use",
        sanitize(&path.to_string_lossy())
    ))
}

/// Removes a file whose removal was begun by a process that is dead.
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
    // The database goes last: a new one shall not lose the files beside it.
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

/// Whether this can be the id of a project, and so the name of a file.
fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_projects_do_not_meet() {
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
    fn a_project_whose_folder_is_gone_is_still_known() {
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
    fn only_folders_that_were_allowed_are_used() {
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
        let said = |path: &Path| {
            let path = path.to_str().unwrap();
            let error = data_dir.project(&ada, path).unwrap_err().to_string();
            error.replace(path, "it")
        };
        let nowhere = outside.path().join("nowhere");
        assert_eq!(
            said(&nowhere),
            said(outside.path()),
            "nobody learns which is there"
        );
        let inside = inside.path().canonicalize().unwrap();
        assert!(said(&inside.join("nowhere")).contains("existing folder"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_another_process_made_anew_is_opened_anew() {
        let (data, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (here, there) = (DataDir::new(data.path()), DataDir::new(data.path()));
        let ada = Owner::for_user("ada");
        let project = here.project(&ada, one.path().to_str().unwrap()).unwrap();
        let old = here.open_project(&ada, &project).unwrap();
        assert!(there.delete_project(&ada, project.id()).unwrap());
        let new = there.open_project(&ada, &project).unwrap();

        let insert = "INSERT INTO about VALUES ('note', 'kept')";
        let lost = old.write(|db| Ok(db.execute(insert, [])?)).unwrap_err();
        assert!(lost.to_string().contains("removed meanwhile"), "{lost}");
        let current = here.open_project(&ada, &project).unwrap();
        current.write(|db| Ok(db.execute(insert, [])?)).unwrap();
        drop((old, current));

        let count = "SELECT count(*) FROM about WHERE key = 'note'";
        let count = new.read(|db| Ok(db.query_row(count, [], |row| row.get::<_, i64>(0))?));
        assert_eq!(count.unwrap(), 1);
    }

    #[test]
    fn a_file_of_another_name_is_no_project() {
        let data = tempfile::tempdir().unwrap();
        let (data_dir, ada) = (DataDir::new(data.path()), Owner::for_user("ada"));
        data_dir.open_shared(&ada).unwrap();
        let copy = data.path().join(ada.id()).join("copy of shared.db");
        std::fs::write(copy, "").unwrap();
        assert!(data_dir.project_ids(&ada).unwrap().is_empty());
    }

    #[test]
    fn what_was_removed_is_gone_from_the_disk() {
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
