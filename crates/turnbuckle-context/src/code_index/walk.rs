//! Walks a folder and selects the files to index.
//!
//! `.gitignore` and `.ignore` apply, even outside of a repository. Hidden files are skipped and symlinks are not followed. Only
//! ignore files are opened; all other decisions use names and sizes. Each folder is listed by its descriptor, so replacing it
//! by a link during the walk has no effect.

mod ignore_rules;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use ignore::overrides::{Override, OverrideBuilder};

use self::ignore_rules::{IgnoreRules, UnusableRules};
use super::{
    IndexOptions, MAX_WILDCARDS, SkipReason, count_wildcards,
    generated::{is_binary_name, is_generated_name},
};
use crate::{
    ContextError,
    storage::dir_handle::{DirEntry, DirEntryKind, DirHandle},
    text::byte_prefix,
};

const MAX_DEPTH: usize = 64;
const MAX_FILES: usize = 200_000;
/// Maximum number of entries per folder, because all are held in memory; a folder with more is skipped.
const MAX_ENTRIES: usize = if cfg!(test) { 1_000 } else { MAX_FILES };
const MAX_PATH_BYTES: usize = 1_000;
const MAX_PATTERNS: usize = 100;
const MAX_PATTERN_BYTES: usize = 500;
/// Maximum length of all patterns together.
const MAX_TOTAL_PATTERN_BYTES: usize = 10_000;
/// Number of entries between two stop checks.
const STOP_CHECK_ENTRIES: usize = 256;

/// A file found by the walk.
#[derive(Debug)]
pub(super) struct FoundFile {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) modified: i64,
}

/// Numbers of skipped files, by reason.
pub(super) type SkipCounts = BTreeMap<SkipReason, u64>;

/// The end of a walk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WalkResult {
    /// The walk is complete: other files do not exist.
    Everything,
    /// A folder could not be read because of a transient error.
    Partly,
    /// The caller stopped the walk.
    Stopped,
}

/// The include and exclude patterns of the options.
#[derive(Debug)]
pub(super) struct FileFilter(Override);

impl FileFilter {
    /// Parses the patterns. The error names an invalid one.
    pub(super) fn new(root: &Path, options: &IndexOptions) -> Result<Self, ContextError> {
        if options.include.len() + options.exclude.len() > MAX_PATTERNS {
            return Err(ContextError::invalid(format!(
                "more than {MAX_PATTERNS} patterns; use fewer, more general ones"
            )));
        }
        let patterns = options.include.iter().chain(&options.exclude);
        if patterns.map(String::len).sum::<usize>() > MAX_TOTAL_PATTERN_BYTES {
            return Err(ContextError::invalid(format!(
                "the patterns have more than {MAX_TOTAL_PATTERN_BYTES} bytes together; use fewer, more general ones"
            )));
        }
        let mut builder = OverrideBuilder::new(root);
        for pattern in &options.include {
            let pattern = validate_pattern(pattern)?;
            let folder = format!("{}/**", pattern.trim_end_matches('/'));
            // `src` and `src/` match the folder and everything below it.
            for glob in [pattern, &folder] {
                builder
                    .add(glob)
                    .map_err(|error| bad_pattern(pattern, &error))?;
            }
        }
        for pattern in &options.exclude {
            let pattern = validate_pattern(pattern)?;
            let added = builder.add(&format!("!{pattern}"));
            added.map_err(|error| bad_pattern(pattern, &error))?;
        }
        let built = builder.build();
        built.map(Self).map_err(|error| bad_pattern("", &error))
    }

    fn excludes(&self, path: &Path, is_folder: bool) -> bool {
        self.0.matched(path, is_folder).is_ignore()
    }
}

/// Calls `on_file` for each selected file of an open folder, ordered by name. `root` is its path.
pub(super) fn walk(
    folder: &DirHandle,
    root: &Path,
    options: &IndexOptions,
    skip_counts: &mut SkipCounts,
    should_continue: &mut dyn FnMut() -> ControlFlow<()>,
    on_file: &mut dyn FnMut(FoundFile),
) -> Result<WalkResult, ContextError> {
    let mut walk = TreeWalk {
        root,
        options,
        filter: FileFilter::new(root, options)?,
        rules: IgnoreRules::from_parents(root).map_err(ignore_rules_error)?,
        path: root.to_owned(),
        levels: Vec::new(),
        walk_result: WalkResult::Everything,
        seen: 0,
        skip_counts,
        on_file,
    };
    walk.open_root(folder)?;
    let mut number = 0_usize;
    while let Some(level) = walk.levels.last_mut() {
        if number.is_multiple_of(STOP_CHECK_ENTRIES) && should_continue().is_break() {
            return Ok(WalkResult::Stopped);
        }
        number += 1;
        match level.entries.next() {
            Some(entry) => walk.visit_entry(&entry),
            None => walk.leave(),
        }
    }
    Ok(walk.walk_result)
}

/// A walk in progress.
struct TreeWalk<'a> {
    root: &'a Path,
    options: &'a IndexOptions,
    filter: FileFilter,
    rules: IgnoreRules,
    /// The path of the current entry.
    path: PathBuf,
    /// The current folder and its parents up to the root.
    levels: Vec<WalkLevel>,
    walk_result: WalkResult,
    seen: usize,
    skip_counts: &'a mut SkipCounts,
    on_file: &'a mut dyn FnMut(FoundFile),
}

/// A folder on the current path.
struct WalkLevel {
    folder: DirHandle,
    /// Entries that were not visited yet.
    entries: std::vec::IntoIter<DirEntry>,
    /// True if the folder has its own ignore rules.
    has_rules: bool,
}

impl TreeWalk<'_> {
    fn open_root(&mut self, folder: &DirHandle) -> Result<(), ContextError> {
        let open = || -> io::Result<_> {
            let folder = folder.open_relative(Path::new(""))?;
            let entries = folder.entries(MAX_ENTRIES)?;
            Ok((folder, entries))
        };
        let (folder, entries) = open().map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => ContextError::invalid(format!(
                "the folder has more than {MAX_ENTRIES} entries; index its subfolders one by one"
            )),
            _ => ContextError::file(self.root, error),
        })?;
        let entered = self.rules.push(&folder, &self.path, &entries);
        let has_rules = entered.map_err(ignore_rules_error)?;
        self.levels.push(WalkLevel {
            folder,
            entries: entries.into_iter(),
            has_rules,
        });
        Ok(())
    }

    fn visit_entry(&mut self, entry: &DirEntry) {
        self.path.push(&entry.name);
        let is_folder = entry.kind == DirEntryKind::Dir;
        let entered = if !self.is_included(&entry.name, is_folder) {
            false
        } else if is_folder {
            self.enter(&entry.name)
        } else {
            self.classify(entry);
            false
        };
        if !entered {
            self.path.pop();
        }
    }

    fn is_included(&self, name: &OsStr, is_folder: bool) -> bool {
        let rule_match = self.rules.match_path(&self.path, is_folder);
        // A rule can include a hidden file.
        let is_left_out = rule_match.is_ignore() || (rule_match.is_none() && is_hidden(name));
        !is_left_out && !self.filter.excludes(&self.path, is_folder)
    }

    /// Enters a folder. Returns whether that was possible.
    fn enter(&mut self, name: &OsStr) -> bool {
        if self.levels.len() == MAX_DEPTH {
            count_skip(self.skip_counts, SkipReason::LimitExceeded);
            return false;
        }
        let Some(level) = self.levels.last() else {
            return false;
        };
        let open = || -> io::Result<_> {
            let folder = level.folder.open_dir(name)?;
            let entries = folder.entries(MAX_ENTRIES)?;
            Ok((folder, entries))
        };
        let (folder, entries) = match open() {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                count_skip(self.skip_counts, SkipReason::LimitExceeded);
                return false;
            }
            Err(error) => {
                if !is_permanent(&error) {
                    self.walk_result = WalkResult::Partly;
                }
                count_skip(self.skip_counts, SkipReason::Unreadable);
                return false;
            }
        };
        let Ok(has_rules) = self.rules.push(&folder, &self.path, &entries) else {
            count_skip(self.skip_counts, SkipReason::Unreadable);
            return false;
        };
        self.levels.push(WalkLevel {
            folder,
            entries: entries.into_iter(),
            has_rules,
        });
        true
    }

    fn leave(&mut self) {
        if self.levels.pop().is_some_and(|level| level.has_rules) {
            self.rules.pop();
        }
        self.path.pop();
    }

    fn classify(&mut self, entry: &DirEntry) {
        match self.file_info(entry) {
            Ok(_) if self.seen == MAX_FILES => {
                count_skip(self.skip_counts, SkipReason::LimitExceeded);
            }
            Ok(found) => {
                self.seen += 1;
                (self.on_file)(found);
            }
            Err(reason) => count_skip(self.skip_counts, reason),
        }
    }

    /// Returns the file if its name and size qualify.
    fn file_info(&self, entry: &DirEntry) -> Result<FoundFile, SkipReason> {
        if entry.kind != DirEntryKind::File {
            return Err(SkipReason::NotAFile);
        }
        let path = self.path.strip_prefix(self.root).ok();
        let path = path.and_then(Path::to_str).map(with_slashes);
        let path = path.filter(|path| path.len() <= MAX_PATH_BYTES);
        let path = path.ok_or(SkipReason::InvalidName)?;
        if is_binary_name(&path) {
            return Err(SkipReason::Binary);
        }
        if is_generated_name(&path) {
            return Err(SkipReason::Generated);
        }
        let level = self.levels.last().ok_or(SkipReason::Unreadable)?;
        let stat = level.folder.stat(&entry.name);
        let stat = stat.map_err(|_| SkipReason::Unreadable)?;
        match stat.size {
            _ if stat.kind != DirEntryKind::File => Err(SkipReason::NotAFile),
            0 => Err(SkipReason::Empty),
            size if size > self.options.max_file_size => Err(SkipReason::TooLarge),
            size => Ok(FoundFile {
                path,
                size,
                modified: stat.modified,
            }),
        }
    }
}

fn ignore_rules_error(UnusableRules: UnusableRules) -> ContextError {
    ContextError::invalid(
        "the `.gitignore` or `.ignore` of the folder, or of a parent folder in its repository, is not a file, is too large or cannot be read",
    )
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn with_slashes(path: &str) -> String {
    match std::path::MAIN_SEPARATOR {
        '/' => path.to_owned(),
        other => path.replace(other, "/"),
    }
}

pub(super) fn count_skip(skip_counts: &mut SkipCounts, reason: SkipReason) {
    *skip_counts.entry(reason).or_default() += 1;
}

fn validate_pattern(pattern: &str) -> Result<&str, ContextError> {
    let plain = pattern.strip_prefix("./").unwrap_or(pattern);
    if plain.trim().is_empty() || plain.starts_with('!') || plain.len() > MAX_PATTERN_BYTES {
        return Err(ContextError::invalid(format!(
            "`{}` cannot be used as a pattern; write a glob such as `src/**/*.rs`, without `!`",
            shortened(pattern)
        )));
    }
    if count_wildcards(plain) > MAX_WILDCARDS {
        return Err(ContextError::invalid(format!(
            "`{}` has more than {MAX_WILDCARDS} of `*`, `?`, `[` and `{{`; write several simpler patterns",
            shortened(pattern)
        )));
    }
    Ok(plain)
}

fn bad_pattern(pattern: &str, error: &ignore::Error) -> ContextError {
    ContextError::invalid(format!(
        "`{}` cannot be used as a pattern: {error}",
        shortened(pattern)
    ))
}

fn shortened(pattern: &str) -> &str {
    byte_prefix(pattern, 80)
}

/// Returns whether an error is permanent: the file is missing or access is denied.
fn is_permanent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests;
