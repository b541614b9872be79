//! The rules of `.gitignore` and `.ignore`, from the folder that is looked at up to the repository's own.
//!
//! They mean what they mean to the `ignore` crate, whose matchers these are; its own walk opens everything by path.

use std::{ffi::OsStr, io, path::Path};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use crate::storage::dir_handle::{DirEntry, DirHandle};

/// Larger rule files are rejected: they would take too long to apply.
const MAX_RULES_BYTES: u64 = 1 << 20;
const GITIGNORE: &str = ".gitignore";
const IGNORE: &str = ".ignore";
/// What the top of a repository has in it.
const REPOSITORY_DIRS: [&str; 2] = [".git", ".jj"];

/// The rules that hold in a folder.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    /// Of each folder that has any, the outermost first.
    levels: Vec<IgnoreLevel>,
    /// Whether the rules of a repository end at the top of it.
    in_repository: bool,
}

#[derive(Debug)]
struct IgnoreLevel {
    git: Gitignore,
    other: Gitignore,
    /// Whether a repository begins here: the rules of one around it do not hold in it.
    is_top: bool,
}

/// The rules of a folder, or of one above it, are no file, too large, or out of reach, so that the folder is not looked at.
#[derive(Debug)]
pub(super) struct UnusableRules;

impl IgnoreRules {
    /// The rules that hold in a folder because of those that it is in.
    pub(super) fn from_parents(root: &Path) -> Result<Self, UnusableRules> {
        let mut rules = Self {
            levels: Vec::new(),
            in_repository: false,
        };
        let folders = DirHandle::open_with_parents(root).map_err(|_| UnusableRules)?;
        let has_git = |folder: &DirHandle| folder.stat(OsStr::new(".git")).is_ok();
        // Rules above the folder count only inside its repository.
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
    /// [`pop`](Self::pop) it later.
    pub(super) fn push(
        &mut self,
        folder: &DirHandle,
        path: &Path,
        entries: &[DirEntry],
    ) -> Result<bool, UnusableRules> {
        let has = |name: &str| {
            let found = entries.binary_search_by(|entry| (*entry.name).cmp(OsStr::new(name)));
            found.is_ok()
        };
        self.add(folder, path, has)
    }

    /// Takes the rules of the innermost folder away.
    pub(super) fn pop(&mut self) {
        self.levels.pop();
    }

    /// Says what the rules say of a path. Those of an inner folder count more, and those of `.ignore` most.
    pub(super) fn match_path(&self, path: &Path, is_folder: bool) -> Match<()> {
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
        folder: &DirHandle,
        path: &Path,
        has: impl Fn(&str) -> bool,
    ) -> Result<bool, UnusableRules> {
        let read = |name: &str| match has(name) {
            true => read_rules(folder, path, name),
            false => Ok(Gitignore::empty()),
        };
        let level = IgnoreLevel {
            git: read(GITIGNORE)?,
            other: read(IGNORE)?,
            is_top: self.in_repository && REPOSITORY_DIRS.into_iter().any(&has),
        };
        let has_rules = level.is_top || !level.git.is_empty() || !level.other.is_empty();
        if has_rules {
            self.levels.push(level);
        }
        Ok(has_rules)
    }
}

/// Reads rules. A line that cannot be read is passed over, and so is a file that nobody may read.
fn read_rules(folder: &DirHandle, path: &Path, name: &str) -> Result<Gitignore, UnusableRules> {
    let bytes = match folder.read_small(name, MAX_RULES_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => Err(UnusableRules),
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
