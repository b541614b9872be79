//! Which files of a folder are wanted.
//!
//! The rules of `.gitignore` and `.ignore` hold, also where there is no repository. Hidden files are left out, symlinks
//! are not followed, and no file but those rules is opened: what the names and the sizes tell is decided here. Every
//! folder is listed by its descriptor, so that one that is exchanged for a link meanwhile leads nowhere else.

mod rules;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};

use self::rules::{Rules, Unsound};
use super::generated::{is_binary_name, is_generated_name};
use super::text::beginning;
use super::{IndexOptions, LeftOut, MOST_WILDCARDS, wildcards};
use crate::ContextError;
use crate::folder::{Entry, EntryKind, Folder};

const MOST_DEPTH: usize = 64;
const MOST_FILES: usize = 200_000;
/// Names in one folder. All of them are in memory at once; a folder that has more is left out.
const MOST_ENTRIES: usize = if cfg!(test) { 1_000 } else { MOST_FILES };
const LONGEST_PATH: usize = 1_000;
const MOST_PATTERNS: usize = 100;
const LONGEST_PATTERN: usize = 500;
/// All patterns together, in bytes.
const LONGEST_PATTERNS: usize = 10_000;
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
        let patterns = options.include.iter().chain(&options.exclude);
        if patterns.map(String::len).sum::<usize>() > LONGEST_PATTERNS {
            return Err(ContextError::refused(format!(
                "the patterns have more than {LONGEST_PATTERNS} bytes together; use fewer and wider ones"
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

/// Shows every wanted file of an open folder, in the order of the names. `root` is its path.
pub(super) fn walk(
    folder: &Folder,
    root: &Path,
    options: &IndexOptions,
    tally: &mut Tally,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
    see: &mut dyn FnMut(Found),
) -> Result<Walked, ContextError> {
    let mut walk = Walk {
        root,
        options,
        wanted: Wanted::new(root, options)?,
        rules: Rules::above(root).map_err(unsound_rules)?,
        path: root.to_owned(),
        levels: Vec::new(),
        walked: Walked::Everything,
        seen: 0,
        tally,
        see,
    };
    walk.begin(folder)?;
    let mut number = 0_usize;
    while let Some(level) = walk.levels.last_mut() {
        if number.is_multiple_of(BREATH) && go_on().is_break() {
            return Ok(Walked::Stopped);
        }
        number += 1;
        match level.entries.next() {
            Some(entry) => walk.visit(&entry),
            None => walk.leave(),
        }
    }
    Ok(walk.walked)
}

/// A walk that is under way.
struct Walk<'a> {
    root: &'a Path,
    options: &'a IndexOptions,
    wanted: Wanted,
    rules: Rules,
    /// The folder that is being looked at.
    path: PathBuf,
    /// It, and those that it is in.
    levels: Vec<Level>,
    walked: Walked,
    seen: usize,
    tally: &'a mut Tally,
    see: &'a mut dyn FnMut(Found),
}

/// A folder that is being looked at.
struct Level {
    folder: Folder,
    /// What was not looked at yet.
    entries: std::vec::IntoIter<Entry>,
    /// Whether it has rules of its own.
    has_rules: bool,
}

impl Walk<'_> {
    fn begin(&mut self, folder: &Folder) -> Result<(), ContextError> {
        let open = || -> io::Result<_> {
            let folder = folder.open_below(Path::new(""))?;
            let entries = folder.entries(MOST_ENTRIES)?;
            Ok((folder, entries))
        };
        let (folder, entries) = open().map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => ContextError::refused(format!(
                "there are more than {MOST_ENTRIES} files in the folder itself; index its folders one by one"
            )),
            _ => ContextError::file(self.root, error),
        })?;
        let entered = self.rules.enter(&folder, &self.path, &entries);
        let has_rules = entered.map_err(unsound_rules)?;
        self.levels.push(Level {
            folder,
            entries: entries.into_iter(),
            has_rules,
        });
        Ok(())
    }

    fn visit(&mut self, entry: &Entry) {
        self.path.push(&entry.name);
        let is_folder = entry.kind == EntryKind::Folder;
        let entered = if !self.is_wanted(&entry.name, is_folder) {
            false
        } else if is_folder {
            self.enter(&entry.name)
        } else {
            self.judge(entry);
            false
        };
        if !entered {
            self.path.pop();
        }
    }

    fn is_wanted(&self, name: &OsStr, is_folder: bool) -> bool {
        let verdict = self.rules.verdict(&self.path, is_folder);
        // A rule can ask for a hidden file.
        let is_left_out = verdict.is_ignore() || (verdict.is_none() && is_hidden(name));
        !is_left_out && !self.wanted.refuses(&self.path, is_folder)
    }

    /// Goes on with a folder. Says whether that was possible.
    fn enter(&mut self, name: &OsStr) -> bool {
        if self.levels.len() == MOST_DEPTH {
            count(self.tally, LeftOut::Beyond);
            return false;
        }
        let Some(level) = self.levels.last() else {
            return false;
        };
        let open = || -> io::Result<_> {
            let folder = level.folder.enter(name)?;
            let entries = folder.entries(MOST_ENTRIES)?;
            Ok((folder, entries))
        };
        let (folder, entries) = match open() {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                count(self.tally, LeftOut::Beyond);
                return false;
            }
            Err(error) => {
                if !is_for_good(&error) {
                    self.walked = Walked::Partly;
                }
                count(self.tally, LeftOut::Unreadable);
                return false;
            }
        };
        let Ok(has_rules) = self.rules.enter(&folder, &self.path, &entries) else {
            count(self.tally, LeftOut::Unreadable);
            return false;
        };
        self.levels.push(Level {
            folder,
            entries: entries.into_iter(),
            has_rules,
        });
        true
    }

    fn leave(&mut self) {
        if self.levels.pop().is_some_and(|level| level.has_rules) {
            self.rules.leave();
        }
        self.path.pop();
    }

    fn judge(&mut self, entry: &Entry) {
        match self.found(entry) {
            Ok(_) if self.seen == MOST_FILES => count(self.tally, LeftOut::Beyond),
            Ok(found) => {
                self.seen += 1;
                (self.see)(found);
            }
            Err(reason) => count(self.tally, reason),
        }
    }

    /// What the name and the size tell about a file.
    fn found(&self, entry: &Entry) -> Result<Found, LeftOut> {
        if entry.kind != EntryKind::File {
            return Err(LeftOut::NotAFile);
        }
        let path = self.path.strip_prefix(self.root).ok();
        let path = path.and_then(Path::to_str).map(with_slashes);
        let path = path.filter(|path| path.len() <= LONGEST_PATH);
        let path = path.ok_or(LeftOut::Name)?;
        if is_binary_name(&path) {
            return Err(LeftOut::Binary);
        }
        if is_generated_name(&path) {
            return Err(LeftOut::Generated);
        }
        let level = self.levels.last().ok_or(LeftOut::Unreadable)?;
        let stat = level.folder.stat(&entry.name);
        let stat = stat.map_err(|_| LeftOut::Unreadable)?;
        match stat.size {
            _ if stat.kind != EntryKind::File => Err(LeftOut::NotAFile),
            0 => Err(LeftOut::Empty),
            size if size > self.options.max_file_size => Err(LeftOut::Huge),
            size => Ok(Found {
                path,
                size,
                modified: stat.modified,
            }),
        }
    }
}

fn unsound_rules(Unsound: Unsound) -> ContextError {
    ContextError::refused(
        "the `.gitignore` or `.ignore` of the folder, or of one above it in its repository, is no file, is too large or cannot be reached",
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

pub(super) fn count(tally: &mut Tally, reason: LeftOut) {
    *tally.entry(reason).or_default() += 1;
}

fn checked(pattern: &str) -> Result<&str, ContextError> {
    let plain = pattern.strip_prefix("./").unwrap_or(pattern);
    if plain.trim().is_empty() || plain.starts_with('!') || plain.len() > LONGEST_PATTERN {
        return Err(ContextError::refused(format!(
            "`{}` cannot be used as a pattern; write a glob such as `src/**/*.rs`, without `!`",
            shortened(pattern)
        )));
    }
    if wildcards(plain) > MOST_WILDCARDS {
        return Err(ContextError::refused(format!(
            "`{}` has more than {MOST_WILDCARDS} of `*`, `?`, `[` and `{{`; write several simpler patterns",
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
fn is_for_good(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests;
