//! Scans a folder of skills, and caches what it read.

use std::{
    collections::HashMap,
    fs::{self, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use turnbuckle_protocol::{
    skills::{Frontmatter, FrontmatterError, digest},
    types::skills::MANIFEST,
};

use super::{
    MAX_BYTES, MAX_FILES, open,
    skill::{SkillError, is_name, join_uri, uri_from_names},
    snapshot::{FileBody, LoadedSkill, SkillFile, media_type},
};

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 16;
/// Maximum number of entries per scan, files and folders.
const MAX_ENTRIES: usize = 100_000;
/// Maximum reads of a file that changes while it is read.
const ATTEMPTS: usize = 3;

/// A folder of skills.
pub(super) struct SkillFolder {
    path: PathBuf,
    cached: HashMap<PathBuf, CachedFile>,
    problems: HashMap<PathBuf, String>,
}

/// The cached content of a file.
#[derive(Clone)]
struct CachedFile {
    stamp: FileStamp,
    /// True if a later change must change the stamp.
    is_reliable: bool,
    digest: Arc<str>,
    size: u64,
    /// The parsed frontmatter of a `SKILL.md`.
    frontmatter: Option<Result<Arc<Frontmatter>, SkillError>>,
}

/// The reason that a skill is left out.
#[derive(Debug, thiserror::Error)]
enum InvalidSkill {
    #[error(transparent)]
    Skill(#[from] SkillError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SkillFolder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            cached: HashMap::new(),
            problems: HashMap::new(),
        }
    }

    /// Scans the folder. Reads changed files, and uses the cache for others.
    pub(super) fn scan(&mut self) -> Vec<Arc<LoadedSkill>> {
        let mut scan = FolderScan {
            root: Arc::default(),
            previous: std::mem::take(&mut self.cached),
            cached: HashMap::new(),
            problems: HashMap::new(),
            skills: Vec::new(),
            remaining_entries: MAX_ENTRIES,
        };
        match fs::canonicalize(&self.path) {
            Ok(root) => {
                scan.root = Arc::new(root.clone());
                scan.find(&root, &mut Vec::new());
            }
            Err(error) => scan.add_problem(&self.path, &error),
        }
        for (path, problem) in &scan.problems {
            if self.problems.get(path) != Some(problem) {
                tracing::warn!(path = %path.display(), "not served as a skill: {problem}");
            }
        }
        self.problems = scan.problems;
        self.cached = scan.cached;
        scan.skills
    }
}

/// One scan of a folder.
struct FolderScan {
    /// The canonical path of the folder.
    root: Arc<PathBuf>,
    previous: HashMap<PathBuf, CachedFile>,
    cached: HashMap<PathBuf, CachedFile>,
    problems: HashMap<PathBuf, String>,
    skills: Vec<Arc<LoadedSkill>>,
    remaining_entries: usize,
}

/// An entry of a folder.
struct FolderEntry {
    name: String,
    path: PathBuf,
    is_folder: bool,
}

impl FolderScan {
    /// Finds skills in a folder and below. A folder inside of a skill belongs to that skill.
    fn find(&mut self, folder: &Path, names: &mut Vec<String>) {
        let entries = match self.list(folder) {
            Ok(entries) => entries,
            Err(error) => return self.add_problem(folder, &error),
        };
        if entries
            .iter()
            .any(|entry| !entry.is_folder && entry.name == MANIFEST)
        {
            match self.skill(folder, names, entries) {
                Ok(skill) => self.skills.push(Arc::new(skill)),
                Err(error) => self.add_problem(folder, &error),
            }
            return;
        }
        for entry in entries.into_iter().filter(|entry| entry.is_folder) {
            if names.len() == MAX_DEPTH {
                self.add_problem(&entry.path, &"the folder is nested too deeply");
                continue;
            }
            names.push(entry.name);
            self.find(&entry.path, names);
            names.pop();
        }
    }

    fn skill(
        &mut self,
        folder: &Path,
        names: &[String],
        entries: Vec<FolderEntry>,
    ) -> Result<LoadedSkill, InvalidSkill> {
        let mut paths = Vec::new();
        self.collect("", entries, 0, &mut paths)?;
        paths.sort_unstable();
        // An entry that moves during the scan may occur twice.
        paths.dedup();
        let mut sizes = 0;
        for (_, path) in &paths {
            sizes += if_exists(fs::metadata(path))?.map_or(0, |metadata| metadata.len());
        }
        if sizes > MAX_BYTES {
            return Err(SkillError::TooLarge.into());
        }
        let uri = uri_from_names(names.iter().map(String::as_str));
        let mut frontmatter = None;
        let mut files = Vec::new();
        for (name, path) in paths {
            let Some(cached) = if_exists(self.file(&path, name == MANIFEST))? else {
                continue;
            };
            if name == MANIFEST {
                frontmatter = cached.frontmatter.clone();
            }
            let uri = join_uri(&uri, &name);
            files.push(SkillFile {
                media_type: media_type(&uri),
                uri,
                digest: cached.digest.clone(),
                size: cached.size,
                body: FileBody::OnDisk {
                    path,
                    root: self.root.clone(),
                },
            });
        }
        // Files may have grown since they were measured.
        if files.iter().map(|file| file.size).sum::<u64>() > MAX_BYTES {
            return Err(SkillError::TooLarge.into());
        }
        let frontmatter = frontmatter.unwrap_or(Err(FrontmatterError::Missing.into()))?;
        match names.last() {
            Some(last) if *last == frontmatter.name => Ok(LoadedSkill {
                folder: uri,
                frontmatter,
                files,
            }),
            last => {
                let own = folder.file_name().unwrap_or_default().to_string_lossy();
                Err(SkillError::NameMismatch {
                    name: frontmatter.name.clone(),
                    folder: last.cloned().unwrap_or_else(|| own.into_owned()),
                }
                .into())
            }
        }
    }

    /// Collects the files of a skill, with their path in the skill and on disk.
    fn collect(
        &mut self,
        prefix: &str,
        entries: Vec<FolderEntry>,
        depth: usize,
        paths: &mut Vec<(String, PathBuf)>,
    ) -> Result<(), InvalidSkill> {
        for entry in entries {
            let name = format!("{prefix}{}", entry.name);
            if !entry.is_folder {
                paths.push((name, entry.path));
            } else if depth < MAX_DEPTH {
                let entries = if_exists(self.list(&entry.path))?.unwrap_or_default();
                self.collect(&format!("{name}/"), entries, depth + 1, paths)?;
            } else {
                return Err(io::Error::other("the folders are nested too deeply").into());
            }
            if paths.len() > MAX_FILES {
                return Err(SkillError::TooManyFiles.into());
            }
        }
        Ok(())
    }

    /// Returns the entries of a folder, sorted by name, without hidden files and links that leave the folder.
    fn list(&mut self, folder: &Path) -> io::Result<Vec<FolderEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            self.remaining_entries = self
                .remaining_entries
                .checked_sub(1)
                .ok_or_else(|| io::Error::other("too many files"))?;
            let entry = entry?;
            if let Some(entry) = if_exists(self.read_entry(&entry))?.flatten() {
                entries.push(entry);
            }
        }
        entries.sort_unstable_by(|entry, other| entry.name.cmp(&other.name));
        Ok(entries)
    }

    fn read_entry(&mut self, entry: &fs::DirEntry) -> io::Result<Option<FolderEntry>> {
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            self.add_problem(&path, &"the name is not UTF-8");
            return Ok(None);
        };
        if name.starts_with('.') || !is_name(&name) {
            return Ok(None);
        }
        let kind = entry.file_type()?;
        let (path, is_file) = if kind.is_symlink() {
            match fs::canonicalize(&path) {
                Ok(target) if target.starts_with(&*self.root) && target.is_file() => (target, true),
                _ => {
                    self.add_problem(&path, &"the link does not lead to a file below this folder");
                    return Ok(None);
                }
            }
        } else {
            (path, kind.is_file())
        };
        // Pipes and devices are skipped: opening one can block.
        Ok((is_file || kind.is_dir()).then_some(FolderEntry {
            name,
            path,
            is_folder: !is_file,
        }))
    }

    /// Returns the content of a file. Reads it only if it may have changed.
    fn file(&mut self, path: &Path, is_manifest: bool) -> io::Result<CachedFile> {
        let now = FileStamp::new(&fs::metadata(path)?);
        let previous = self.previous.get(path).or_else(|| self.cached.get(path));
        let cached = match previous {
            Some(cached)
                if cached.is_reliable
                    && cached.stamp == now
                    && cached.frontmatter.is_some() == is_manifest =>
            {
                cached.clone()
            }
            _ => CachedFile::read(path, is_manifest)?,
        };
        self.cached.insert(path.to_owned(), cached.clone());
        Ok(cached)
    }

    fn add_problem(&mut self, path: &Path, error: &dyn std::fmt::Display) {
        self.problems.insert(path.to_owned(), error.to_string());
    }
}

impl CachedFile {
    fn read(path: &Path, is_manifest: bool) -> io::Result<Self> {
        let (bytes, stamp, is_unchanged) = read(path)?;
        let frontmatter = is_manifest.then(|| {
            let text = std::str::from_utf8(&bytes).map_err(|_| SkillError::NotUtf8)?;
            Ok(Arc::new(Frontmatter::parse(text)?))
        });
        Ok(Self {
            is_reliable: is_unchanged && stamp.has_result(),
            stamp,
            digest: digest(&bytes).into(),
            size: bytes.len() as u64,
            frontmatter,
        })
    }
}

/// Returns `None` if a file was deleted since it was listed, such as a temporary file of an editor.
fn if_exists<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Reads the current content of a file.
pub(super) fn read_current(path: &Path, root: &Path) -> io::Result<Vec<u8>> {
    let real = fs::canonicalize(path)?;
    if !real.starts_with(root) || !fs::metadata(&real)?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    read(&real).map(|(bytes, ..)| bytes)
}

/// Returns the bytes of a file, its stamp, and whether it was unchanged during the read.
fn read(path: &Path) -> io::Result<(Vec<u8>, FileStamp, bool)> {
    let mut attempts = 1;
    loop {
        let mut file = open::open_file(path)?;
        let previous = FileStamp::new(&file.metadata()?);
        let mut bytes = Vec::new();
        file.by_ref().take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        let after = FileStamp::new(&file.metadata()?);
        let is_unchanged = previous == after;
        if is_unchanged || attempts == ATTEMPTS {
            return Ok((bytes, after, is_unchanged));
        }
        attempts += 1;
    }
}

/// Metadata that identifies the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    size: u64,
    modified: Option<SystemTime>,
    changed: Option<SystemTime>,
}

/// Timestamps are coarse: two changes within this time may have the same stamp.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

impl FileStamp {
    fn new(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified: metadata.modified().ok(),
            changed: changed(metadata),
        }
    }

    /// Returns whether a later change must change the stamp.
    fn has_result(&self) -> bool {
        let last = self.changed.or(self.modified);
        last.and_then(|last| SystemTime::now().duration_since(last).ok())
            .is_some_and(|age| age > TIMESTAMP_GRANULARITY)
    }
}

/// The change time of the inode, which cannot be set back.
#[cfg(unix)]
fn changed(metadata: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let seconds = Duration::from_secs(metadata.ctime().try_into().ok()?);
    let nanos = Duration::from_nanos(metadata.ctime_nsec().try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(seconds + nanos)
}

#[cfg(not(unix))]
fn changed(_: &Metadata) -> Option<SystemTime> {
    None
}

#[cfg(test)]
mod tests;
