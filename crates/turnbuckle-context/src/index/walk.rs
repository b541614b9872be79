//! Which files of a folder are wanted.
//!
//! The rules of `.gitignore` and `.ignore` hold, also where there is no repository. Hidden files are left out, symlinks
//! are not followed, and no file is opened: what the names and the sizes tell is decided here.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::UNIX_EPOCH;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};

use super::generated::{is_binary_name, is_generated_name};
use super::text::beginning;
use super::{IndexOptions, LeftOut};
use crate::ContextError;

const MOST_DEPTH: usize = 64;
const MOST_FILES: usize = 200_000;
const LONGEST_PATH: usize = 1_000;
const MOST_PATTERNS: usize = 100;
const LONGEST_PATTERN: usize = 500;
/// Rules of a size that nobody writes are not read: they would take long to apply, or never end.
const MOST_RULES: u64 = 1 << 20;
/// How often somebody is asked whether to go on.
const BREATH: usize = 256;

/// A file as the walk sees it.
#[derive(Debug)]
pub(super) struct Found {
    /// Below the root, with `/`.
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) modified: i64,
}

/// What a walk left out, by the reason.
pub(super) type Tally = BTreeMap<LeftOut, u64>;

/// How a walk ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Walked {
    /// All was seen: what was not found is not there.
    Everything,
    /// Something could not be read for a reason that may pass.
    Partly,
    /// It was told to stop.
    Stopped,
}

/// Which paths a caller asked for.
#[derive(Debug)]
pub(super) struct Wanted(Override);

impl Wanted {
    /// Reads the patterns; one that cannot be read is named.
    pub(super) fn new(root: &Path, options: &IndexOptions) -> Result<Self, ContextError> {
        if options.include.len() + options.exclude.len() > MOST_PATTERNS {
            return Err(ContextError::refused(format!(
                "there are more than {MOST_PATTERNS} patterns; use fewer and wider ones"
            )));
        }
        let mut builder = OverrideBuilder::new(root);
        for pattern in &options.include {
            let pattern = checked(pattern)?;
            let folder = format!("{}/**", pattern.trim_end_matches('/'));
            // `src` and `src/` are the folder and everything below it.
            for glob in [pattern, &folder] {
                builder
                    .add(glob)
                    .map_err(|error| bad_pattern(pattern, &error))?;
            }
        }
        for pattern in &options.exclude {
            let pattern = checked(pattern)?;
            let added = builder.add(&format!("!{pattern}"));
            added.map_err(|error| bad_pattern(pattern, &error))?;
        }
        let built = builder.build();
        built.map(Self).map_err(|error| bad_pattern("", &error))
    }

    fn refuses(&self, path: &Path, is_folder: bool) -> bool {
        self.0.matched(path, is_folder).is_ignore()
    }
}

/// Shows every wanted file, in the order of the names.
pub(super) fn walk(
    root: &Path,
    options: &IndexOptions,
    tally: &mut Tally,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
    see: &mut dyn FnMut(Found),
) -> Result<Walked, ContextError> {
    let mut walked = Walked::Everything;
    let mut seen = 0;
    for (number, entry) in builder(root, options)?.build().enumerate() {
        if number % BREATH == 0 && go_on().is_break() {
            return Ok(Walked::Stopped);
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() == Some(0) => {
                return Err(ContextError::file(root, io_error(error)));
            }
            Err(error) => {
                if !is_for_good(&error) {
                    walked = Walked::Partly;
                }
                count(tally, LeftOut::Unreadable);
                continue;
            }
        };
        if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            if entry.depth() == MOST_DEPTH {
                count(tally, LeftOut::Beyond);
            }
            continue;
        }
        match judge(root, options, &entry) {
            Ok(_) if seen == MOST_FILES => count(tally, LeftOut::Beyond),
            Ok(found) => {
                seen += 1;
                see(found);
            }
            Err(reason) => count(tally, reason),
        }
    }
    Ok(walked)
}

/// Nanoseconds since 1970.
pub(super) fn modified(metadata: &Metadata) -> i64 {
    let nanos = |time: std::time::SystemTime| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    };
    metadata.modified().map_or(0, nanos)
}

pub(super) fn count(tally: &mut Tally, reason: LeftOut) {
    *tally.entry(reason).or_default() += 1;
}

fn builder(root: &Path, options: &IndexOptions) -> Result<WalkBuilder, ContextError> {
    let wanted = Wanted::new(root, options)?;
    let in_repository = root.ancestors().any(|folder| folder.join(".git").exists());
    let rules_above_are_sound = root.ancestors().skip(1).all(has_sound_rules);
    if !has_sound_rules(root) {
        return Err(ContextError::refused(
            "the `.gitignore` or `.ignore` of the folder is no file, or too large",
        ));
    }
    let mut builder = WalkBuilder::new(root);
    builder
        .max_depth(Some(MOST_DEPTH))
        .follow_links(false)
        .hidden(true)
        // Rules above the folder belong to its repository; above no repository is somebody's home.
        .parents(in_repository && rules_above_are_sound)
        .require_git(in_repository)
        .git_global(false)
        .git_exclude(false)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let is_wanted = entry.depth() == 0 || !wanted.refuses(entry.path(), is_folder);
            is_wanted && (!is_folder || has_sound_rules(entry.path()))
        });
    Ok(builder)
}

/// Whether the walk can read the rules of a folder: it would wait for a pipe, and read a device for ever.
fn has_sound_rules(folder: &Path) -> bool {
    [".gitignore", ".ignore"].into_iter().all(|name| {
        let metadata = fs::symlink_metadata(folder.join(name));
        metadata.map_or(true, |rules| rules.is_file() && rules.len() <= MOST_RULES)
    })
}

/// What the name and the size tell about a file.
fn judge(root: &Path, options: &IndexOptions, entry: &DirEntry) -> Result<Found, LeftOut> {
    if !entry.file_type().is_some_and(|kind| kind.is_file()) {
        return Err(LeftOut::NotAFile);
    }
    let path = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
    let path = path.map(|path| path.replace(std::path::MAIN_SEPARATOR, "/"));
    let path = path.filter(|path| path.len() <= LONGEST_PATH);
    let path = path.ok_or(LeftOut::Name)?;
    if is_binary_name(&path) {
        return Err(LeftOut::Binary);
    }
    if is_generated_name(&path) {
        return Err(LeftOut::Generated);
    }
    let metadata = entry.metadata().map_err(|_| LeftOut::Unreadable)?;
    match metadata.len() {
        0 => Err(LeftOut::Empty),
        size if size > options.max_file_size => Err(LeftOut::Huge),
        size => Ok(Found {
            path,
            size,
            modified: modified(&metadata),
        }),
    }
}

fn checked(pattern: &str) -> Result<&str, ContextError> {
    let plain = pattern.strip_prefix("./").unwrap_or(pattern);
    if plain.trim().is_empty() || plain.starts_with('!') || plain.len() > LONGEST_PATTERN {
        return Err(ContextError::refused(format!(
            "`{}` cannot be used as a pattern; write a glob such as `src/**/*.rs`, without `!`",
            shortened(pattern)
        )));
    }
    Ok(plain)
}

fn bad_pattern(pattern: &str, error: &ignore::Error) -> ContextError {
    ContextError::refused(format!(
        "`{}` cannot be used as a pattern: {error}",
        shortened(pattern)
    ))
}

fn shortened(pattern: &str) -> &str {
    beginning(pattern, 80)
}

/// Whether what could not be read is gone or closed to us, rather than out of reach for a moment.
fn is_for_good(error: &ignore::Error) -> bool {
    let kind = error.io_error().map(io::Error::kind);
    matches!(
        kind,
        Some(io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
    )
}

fn io_error(error: ignore::Error) -> io::Error {
    error
        .into_io_error()
        .unwrap_or_else(|| io::ErrorKind::Other.into())
}

#[cfg(test)]
mod tests;
