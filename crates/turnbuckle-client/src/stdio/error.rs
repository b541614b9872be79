//! Why a child process did not start.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program.
    #[error("there is no program `{program}`{}", hint())]
    NotFound {
        /// The program's name or path, as it was given.
        program: String,
    },
    /// The file is there, but what its first line names to run it is not.
    #[error("`{program}` is there, but not the interpreter that it names")]
    NoInterpreter {
        /// The program's path, as it was given.
        program: String,
    },
    /// The folder to start it in is missing.
    #[error("`{program}` cannot be started in {folder:?}: there is no such folder")]
    NoFolder {
        /// The program's name or path, as it was given.
        program: String,
        /// The folder, as it was given.
        folder: PathBuf,
    },
    /// The operating system refused.
    #[error("`{program}` could not be started")]
    Refused {
        /// The program's name or path, as it was given.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
}

impl SpawnError {
    /// Finds out what a failed start was about: the operating system has one word for three things that may be missing.
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

/// A name without a separator is looked for elsewhere; a file of that name here means nothing.
fn is_file(program: &OsStr, folder: Option<&Path>) -> bool {
    let program = Path::new(program);
    let is_path = program.components().count() > 1;
    is_path && folder.unwrap_or(Path::new("")).join(program).is_file()
}

fn hint() -> &'static str {
    if cfg!(windows) {
        "; a batch file is named with its ending, such as `npx.cmd`"
    } else {
        ""
    }
}
