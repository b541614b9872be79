//! A folder on disk, and what was seen in it last.

use std::{
    collections::HashMap,
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use turnbuckle_protocol::{
    skills::{Frontmatter, FrontmatterError, digest},
    types::skills::MANIFEST,
};

use super::{
    MOST_BYTES, MOST_FILES, address,
    error::SkillError,
    media, open,
    shelf::{Body, File, Volume},
    stamp::Stamp,
};

/// How many folders may lie inside each other.
const DEEPEST: usize = 16;
/// How many names are looked at, files and folders together.
const MOST_NAMES: usize = 100_000;
/// How often a file is read again that changes meanwhile.
const ATTEMPTS: usize = 3;

/// A folder with skills in it.
pub(super) struct Folder {
    path: PathBuf,
    known: HashMap<PathBuf, Known>,
    complaints: HashMap<PathBuf, String>,
}

/// What is known of a file since it was read.
#[derive(Clone)]
struct Known {
    stamp: Stamp,
    /// Whether a change would have shown in the stamp.
    settled: bool,
    digest: Arc<str>,
    size: u64,
    /// What its head says, if it is a `SKILL.md`.
    head: Option<Result<Arc<Frontmatter>, SkillError>>,
}

/// Why a skill is left out.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Skill(#[from] SkillError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            known: HashMap::new(),
            complaints: HashMap::new(),
        }
    }

    /// Looks at the folder: reads what has changed, and remembers the rest.
    pub(super) fn look(&mut self) -> Vec<Arc<Volume>> {
        let mut look = Look {
            root: Arc::default(),
            before: std::mem::take(&mut self.known),
            known: HashMap::new(),
            complaints: HashMap::new(),
            skills: Vec::new(),
            left: MOST_NAMES,
        };
        match fs::canonicalize(&self.path) {
            Ok(root) => {
                look.root = Arc::new(root.clone());
                look.find(&root, &mut Vec::new());
            }
            Err(error) => look.complain(&self.path, &error),
        }
        for (path, complaint) in &look.complaints {
            if self.complaints.get(path) != Some(complaint) {
                tracing::warn!(path = %path.display(), "not served as a skill: {complaint}");
            }
        }
        self.complaints = look.complaints;
        self.known = look.known;
        look.skills
    }
}

/// One look at a folder.
struct Look {
    /// The folder without links on the way to it.
    root: Arc<PathBuf>,
    before: HashMap<PathBuf, Known>,
    known: HashMap<PathBuf, Known>,
    complaints: HashMap<PathBuf, String>,
    skills: Vec<Arc<Volume>>,
    left: usize,
}

/// Something in a folder, by name.
struct Inside {
    name: String,
    path: PathBuf,
    is_folder: bool,
}

impl Look {
    /// Finds skills in a folder and below. What lies inside a skill belongs to it and is none itself.
    fn find(&mut self, folder: &Path, names: &mut Vec<String>) {
        let inside = match self.list(folder) {
            Ok(inside) => inside,
            Err(error) => return self.complain(folder, &error),
        };
        if inside
            .iter()
            .any(|one| !one.is_folder && one.name == MANIFEST)
        {
            match self.skill(folder, names, inside) {
                Ok(volume) => self.skills.push(Arc::new(volume)),
                Err(error) => self.complain(folder, &error),
            }
            return;
        }
        for one in inside.into_iter().filter(|one| one.is_folder) {
            if names.len() == DEEPEST {
                self.complain(&one.path, &"it lies too deep");
                continue;
            }
            names.push(one.name);
            self.find(&one.path, names);
            names.pop();
        }
    }

    fn skill(
        &mut self,
        folder: &Path,
        names: &[String],
        inside: Vec<Inside>,
    ) -> Result<Volume, Broken> {
        let mut paths = Vec::new();
        self.collect("", inside, 0, &mut paths)?;
        paths.sort_unstable();
        // A name that moves while the folder is read may be met twice.
        paths.dedup();
        let mut sizes = 0;
        for (_, path) in &paths {
            sizes += still_there(fs::metadata(path))?.map_or(0, |metadata| metadata.len());
        }
        if sizes > MOST_BYTES {
            return Err(SkillError::TooLarge.into());
        }
        let uri = address::of(names.iter().map(String::as_str));
        let mut head = None;
        let mut files = Vec::new();
        for (name, path) in paths {
            let Some(known) = still_there(self.file(&path, name == MANIFEST))? else {
                continue;
            };
            if name == MANIFEST {
                head = known.head.clone();
            }
            let uri = address::below(&uri, &name);
            files.push(File {
                media_type: media::of(&uri),
                uri,
                digest: known.digest.clone(),
                size: known.size,
                body: Body::OnDisk {
                    path,
                    root: self.root.clone(),
                },
            });
        }
        // Files may have grown since they were counted.
        if files.iter().map(|file| file.size).sum::<u64>() > MOST_BYTES {
            return Err(SkillError::TooLarge.into());
        }
        let head = head.unwrap_or(Err(FrontmatterError::Missing.into()))?;
        match names.last() {
            Some(last) if *last == head.name => Ok(Volume {
                folder: uri,
                head,
                files,
            }),
            last => {
                let own = folder.file_name().unwrap_or_default().to_string_lossy();
                Err(SkillError::OtherName {
                    name: head.name.clone(),
                    folder: last.cloned().unwrap_or_else(|| own.into_owned()),
                }
                .into())
            }
        }
    }

    /// Finds the files of a skill, each with its path inside the skill and the one on disk.
    fn collect(
        &mut self,
        prefix: &str,
        inside: Vec<Inside>,
        depth: usize,
        paths: &mut Vec<(String, PathBuf)>,
    ) -> Result<(), Broken> {
        for one in inside {
            let name = format!("{prefix}{}", one.name);
            if !one.is_folder {
                paths.push((name, one.path));
            } else if depth < DEEPEST {
                let inside = still_there(self.list(&one.path))?.unwrap_or_default();
                self.collect(&format!("{name}/"), inside, depth + 1, paths)?;
            } else {
                return Err(io::Error::other("its folders lie too deep").into());
            }
            if paths.len() > MOST_FILES {
                return Err(SkillError::TooManyFiles.into());
            }
        }
        Ok(())
    }

    /// What is in a folder, in the order of names, without what is hidden or leads elsewhere.
    fn list(&mut self, folder: &Path) -> io::Result<Vec<Inside>> {
        let mut inside = Vec::new();
        for one in fs::read_dir(folder)? {
            self.left = self
                .left
                .checked_sub(1)
                .ok_or_else(|| io::Error::other("there are too many files"))?;
            let one = one?;
            if let Some(one) = still_there(self.admit(&one))?.flatten() {
                inside.push(one);
            }
        }
        inside.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(inside)
    }

    fn admit(&mut self, one: &fs::DirEntry) -> io::Result<Option<Inside>> {
        let path = one.path();
        let Ok(name) = one.file_name().into_string() else {
            self.complain(&path, &"its name is not UTF-8");
            return Ok(None);
        };
        if name.starts_with('.') || !address::is_name(&name) {
            return Ok(None);
        }
        let kind = one.file_type()?;
        let (path, is_file) = if kind.is_symlink() {
            match fs::canonicalize(&path) {
                Ok(target) if target.starts_with(&*self.root) && target.is_file() => (target, true),
                _ => {
                    self.complain(&path, &"it is a link that leads to no file of this folder");
                    return Ok(None);
                }
            }
        } else {
            (path, kind.is_file())
        };
        // Neither pipes nor devices: opening one can take forever.
        Ok((is_file || kind.is_dir()).then_some(Inside {
            name,
            path,
            is_folder: !is_file,
        }))
    }

    /// What a file contains, read anew only if it may have changed.
    fn file(&mut self, path: &Path, is_manifest: bool) -> io::Result<Known> {
        let now = Stamp::of(&fs::metadata(path)?);
        let before = self.before.get(path).or_else(|| self.known.get(path));
        let known = match before {
            Some(known)
                if known.settled && known.stamp == now && known.head.is_some() == is_manifest =>
            {
                known.clone()
            }
            _ => Known::read(path, is_manifest)?,
        };
        self.known.insert(path.to_owned(), known.clone());
        Ok(known)
    }

    fn complain(&mut self, path: &Path, error: &dyn std::fmt::Display) {
        self.complaints.insert(path.to_owned(), error.to_string());
    }
}

impl Known {
    fn read(path: &Path, is_manifest: bool) -> io::Result<Self> {
        let (bytes, stamp, whole) = read(path)?;
        let head = is_manifest.then(|| {
            let text = std::str::from_utf8(&bytes).map_err(|_| SkillError::NotText)?;
            Ok(Arc::new(Frontmatter::of(text)?))
        });
        Ok(Self {
            settled: whole && stamp.is_settled(),
            stamp,
            digest: digest(&bytes).into(),
            size: bytes.len() as u64,
            head,
        })
    }
}

/// What was found, unless it has gone since it was listed: then it is no part of the skill, as a file that an editor
/// writes and moves into its place is none.
fn still_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Reads a file of a folder again, for whoever asks for its contents.
pub(super) fn read_again(path: &Path, root: &Path) -> io::Result<Vec<u8>> {
    let real = fs::canonicalize(path)?;
    if !real.starts_with(root) || !fs::metadata(&real)?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    read(&real).map(|(bytes, ..)| bytes)
}

/// The bytes of a file, its stamp, and whether it stayed the same while it was read.
fn read(path: &Path) -> io::Result<(Vec<u8>, Stamp, bool)> {
    let mut attempts = 1;
    loop {
        let mut file = open::file(path)?;
        let before = Stamp::of(&file.metadata()?);
        let mut bytes = Vec::new();
        file.by_ref().take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        let after = Stamp::of(&file.metadata()?);
        let whole = before == after;
        if whole || attempts == ATTEMPTS {
            return Ok((bytes, after, whole));
        }
        attempts += 1;
    }
}

#[cfg(test)]
mod tests;
