//! Errors of child processes: failure to start, and exit.

use std::{
    ffi::OsStr,
    fmt, io,
    path::{Path, PathBuf},
};

/// The reason why a process exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitReason {
    /// It exited with this code; 0 means success.
    Code(i32),
    /// It was killed by this signal; only on Unix.
    Signal(i32),
    /// The status is unknown.
    Unknown,
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::Unknown => f.write_str("ended"),
        }
    }
}

/// The process of a server has exited.
///
/// The text contains the exit reason and the last lines of stderr. They come from the server: sanitize control
/// characters before you print them to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessExited {
    /// The reason.
    pub exit: ExitReason,
    /// The last lines of stderr, if it was captured.
    pub stderr_tail: String,
}

impl ProcessExited {
    /// Maximum number of lines and bytes of stderr.
    const LINES: usize = 10;
    const BYTES: usize = 4096;

    pub(super) fn new(exit: ExitReason, stderr: &str) -> Self {
        let text = stderr.trim_end();
        let mut from = text
            .rmatch_indices('\n')
            .nth(Self::LINES - 1)
            .map_or(0, |(at, _)| at + 1)
            .max(text.len().saturating_sub(Self::BYTES));
        while !text.is_char_boundary(from) {
            from += 1;
        }
        Self {
            exit,
            stderr_tail: text[from..].to_owned(),
        }
    }
}

impl fmt::Display for ProcessExited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server process {}", self.exit)?;
        if !self.stderr_tail.is_empty() {
            write!(f, "; last lines of stderr:\n{}", self.stderr_tail)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProcessExited {}

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program does not exist.
    #[error("program `{program}` not found{}", hint())]
    NotFound {
        /// The name or path of the program, as configured.
        program: String,
    },
    /// The file exists, but the interpreter in its first line does not.
    #[error("the interpreter of `{program}` was not found")]
    NoInterpreter {
        /// The path of the program, as configured.
        program: String,
    },
    /// The working directory does not exist.
    #[error("`{program}` cannot be started: directory {folder:?} not found")]
    NoFolder {
        /// The name or path of the program, as configured.
        program: String,
        /// The directory, as configured.
        folder: PathBuf,
    },
    /// The operating system returned another error.
    #[error("`{program}` could not be started: {source}")]
    Refused {
        /// The name or path of the program, as configured.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl SpawnError {
    /// Determines what is missing: the operating system returns the same error for the program, its interpreter and the
    /// working directory.
    pub(super) fn new(program: &OsStr, folder: Option<&Path>, error: io::Error) -> Self {
        let name = program.to_string_lossy().into_owned();
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Self::NoFolder {
                program: name,
                folder: folder.to_owned(),
            };
        }
        match error.kind() {
            io::ErrorKind::NotFound if is_file(program, folder) => {
                Self::NoInterpreter { program: name }
            }
            io::ErrorKind::NotFound => Self::NotFound { program: name },
            _ => Self::Refused {
                program: name,
                source: error,
            },
        }
    }
}

/// A name without a separator is searched in `PATH`, not in the working directory.
fn is_file(program: &OsStr, folder: Option<&Path>) -> bool {
    is_path(program) && folder.unwrap_or(Path::new("")).join(program).is_file()
}

fn is_path(program: &OsStr) -> bool {
    Path::new(program).components().count() > 1
}

/// Checks that a program exists, because a launcher cannot report it as an error of the start.
///
/// Without a `PATH` the operating system searches in folders of its own, so every name passes.
pub(super) fn check_exists(
    program: &OsStr,
    folder: Option<&Path>,
    search_path: Option<&[PathBuf]>,
) -> io::Result<()> {
    let folder = folder.unwrap_or(Path::new(""));
    let exists = match search_path {
        _ if is_path(program) => folder.join(program).exists(),
        Some(path) => {
            let mut folders = path.iter();
            folders.any(|path| folder.join(path).join(program).exists())
        }
        None => true,
    };
    exists.then_some(()).ok_or(io::ErrorKind::NotFound.into())
}

fn hint() -> &'static str {
    if cfg!(windows) {
        "; name a batch file with its extension, such as `npx.cmd`"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_few_and_short() {
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let wide = "ä".repeat(10_000);

        let few = ProcessExited::new(ExitReason::Code(3), &many);
        let short = ProcessExited::new(ExitReason::Signal(9), &wide);
        let silent = ProcessExited::new(ExitReason::Unknown, "\n");

        assert_eq!(few.stderr_tail.lines().next(), Some("line 90"));
        assert_eq!(few.stderr_tail.lines().count(), 10);
        assert!(few.to_string().starts_with(
            "the server process exited with code 3; last lines of stderr:\nline 90\n"
        ));
        assert_eq!(short.stderr_tail.len(), 4096);
        assert_eq!(silent.to_string(), "the server process ended");
    }
}
