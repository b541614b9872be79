//! The rules of `.gitignore` and `.ignore`, from the current folder up to the top of its repository.
//!
//! Uses the matchers of the `ignore` crate. Its own walk cannot be used, because it opens everything by path.

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
/// Folders at the top of a repository.
const REPOSITORY_DIRS: [&str; 2] = [".git", ".jj"];

/// The rules that apply to the current folder.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    /// The rules of each folder that has some, outermost first.
    levels: Vec<IgnoreLevel>,
    /// True if the root is in a repository, so that rules apply only up to its top.
    in_repository: bool,
}

#[derive(Debug)]
struct IgnoreLevel {
    git: Gitignore,
    other: Gitignore,
    /// True if this is the top of a repository: `.gitignore` rules of an enclosing one do not apply.
    is_top: bool,
}

/// The error for rules that are not a file, are too large or cannot be read. The folder is skipped.
#[derive(Debug)]
pub(super) struct UnusableRules;

impl IgnoreRules {
    /// Reads the rules of the parents of a folder.
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

    /// Adds the rules of a folder with these entries. Returns whether there are any; if so, call [`pop`](Self::pop) after the
    /// folder.
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

    /// Removes the rules of the innermost folder.
    pub(super) fn pop(&mut self) {
        self.levels.pop();
    }

    /// Applies the rules to a path. Inner folders take precedence, and `.ignore` over `.gitignore`.
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
        let read = |name: &str| {
            if has(name) {
                read_rules(folder, path, name)
            } else {
                Ok(Gitignore::empty())
            }
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

/// Reads a rule file. Invalid lines are ignored, and so is a file without read permission.
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
