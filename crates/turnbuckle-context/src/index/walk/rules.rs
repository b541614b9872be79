//! The rules of `.gitignore` and `.ignore`, from the folder that is looked at up to the repository's own.
//!
//! They mean what they mean to the `ignore` crate, whose matchers these are; its own walk opens everything by path.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::folder::{Entry, Folder};

/// Rules of a size that nobody writes are not read: they would take long to apply, or never end.
const MOST_RULES: u64 = 1 << 20;
const GIT_RULES: &str = ".gitignore";
const OTHER_RULES: &str = ".ignore";
/// What the top of a repository has in it.
const REPOSITORIES: [&str; 2] = [".git", ".jj"];

/// The rules that hold in a folder.
#[derive(Debug)]
pub(super) struct Rules {
    /// Of each folder that has any, the outermost first.
    levels: Vec<Level>,
    /// Whether the rules of a repository end at the top of it.
    in_repository: bool,
}

#[derive(Debug)]
struct Level {
    git: Gitignore,
    other: Gitignore,
    /// Whether a repository begins here: the rules of one around it do not hold in it.
    is_top: bool,
}

/// The rules of a folder, or of one above it, are no file, too large, or out of reach, so that the folder is not looked at.
#[derive(Debug)]
pub(super) struct Unsound;

impl Rules {
    /// The rules that hold in a folder because of those that it is in.
    pub(super) fn above(root: &Path) -> Result<Self, Unsound> {
        let mut rules = Self {
            levels: Vec::new(),
            in_repository: false,
        };
        let folders = Folder::open_with_parents(root).map_err(|_| Unsound)?;
        let has_git = |folder: &Folder| folder.stat(OsStr::new(".git")).is_ok();
        // Rules above the folder belong to its repository; above no repository is somebody's home.
        let Some(top) = folders.iter().rposition(has_git) else {
            return Ok(rules);
        };
        rules.in_repository = true;
        let mut paths: Vec<&Path> = root.ancestors().skip(1).collect();
        paths.reverse();
        for (folder, path) in folders.iter().zip(paths).skip(top) {
            let has = |name: &str| folder.stat(OsStr::new(name)).is_ok();
            rules.add(folder, path, has)?;
        }
        Ok(rules)
    }

    /// Adds the rules of a folder that has these entries. Says whether there are any, and so whether to
    /// [`leave`](Self::leave) it later.
    pub(super) fn enter(
        &mut self,
        folder: &Folder,
        path: &Path,
        entries: &[Entry],
    ) -> Result<bool, Unsound> {
        let has = |name: &str| {
            let found = entries.binary_search_by(|entry| (*entry.name).cmp(OsStr::new(name)));
            found.is_ok()
        };
        self.add(folder, path, has)
    }

    /// Takes the rules of the innermost folder away.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Says what the rules say of a path. Those of an inner folder count more, and those of `.ignore` most.
    pub(super) fn verdict(&self, path: &Path, is_folder: bool) -> Match<()> {
        let (mut git, mut other) = (Match::None, Match::None);
        let mut is_within = true;
        for level in self.levels.iter().rev() {
            if other.is_none() {
                other = level.other.matched(path, is_folder).map(|_| ());
            }
            if is_within && git.is_none() {
                git = level.git.matched(path, is_folder).map(|_| ());
            }
            is_within &= !level.is_top;
        }
        other.or(git)
    }

    fn add(
        &mut self,
        folder: &Folder,
        path: &Path,
        has: impl Fn(&str) -> bool,
    ) -> Result<bool, Unsound> {
        let read = |name: &str| match has(name) {
            true => read(folder, path, name),
            false => Ok(Gitignore::empty()),
        };
        let level = Level {
            git: read(GIT_RULES)?,
            other: read(OTHER_RULES)?,
            is_top: self.in_repository && REPOSITORIES.into_iter().any(&has),
        };
        let has_rules = level.is_top || !level.git.is_empty() || !level.other.is_empty();
        if has_rules {
            self.levels.push(level);
        }
        Ok(has_rules)
    }
}

/// Reads rules. A line that cannot be read is passed over, and so is a file that nobody may read.
fn read(folder: &Folder, path: &Path, name: &str) -> Result<Gitignore, Unsound> {
    let bytes = match folder.read_small(name, MOST_RULES) {
        Ok(bytes) => bytes,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => Err(Unsound),
                _ => Ok(Gitignore::empty()),
            };
        }
    };
    let mut builder = GitignoreBuilder::new(path);
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Ok(line) = std::str::from_utf8(line) else {
            break;
        };
        let _ = builder.add_line(None, line);
    }
    Ok(builder.build().unwrap_or_else(|_| Gitignore::empty()))
}
