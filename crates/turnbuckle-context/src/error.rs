//! Why something could not be done.

use std::borrow::Cow;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the context server could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// What was asked for cannot be done as it was asked; the message tells the caller how to go on.
    #[error("{0}")]
    Refused(Cow<'static, str>),
    /// There is no such thing, or none that this caller may see.
    #[error("there is no {0}")]
    Missing(Cow<'static, str>),
    /// The work was given up because nobody waits for it any longer.
    #[error("cancelled")]
    Cancelled,
    /// The work took longer than it may, and was stopped.
    #[error(
        "this took longer than {}, the longest that this server works for one call, and was stopped; ask for less, or try again when it is less busy",
        humantime::format_duration(*.0)
    )]
    TimedOut(Duration),
    /// A file or a folder could not be read or written.
    #[error("{} cannot be used", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database could not do it.
    #[error("{}", storage_message(*trouble, path))]
    Storage {
        /// The file of the database.
        path: PathBuf,
        /// What is wrong with it.
        trouble: Trouble,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The provider of embeddings did not answer.
    #[error("the embeddings cannot be had")]
    Embedding(#[source] Box<dyn Error + Send + Sync>),
    /// The provider of embeddings does not take this text, and will not; others it may.
    #[error("the embedding of this text is refused")]
    EmbeddingRefused(#[source] Box<dyn Error + Send + Sync>),
}

/// What is wrong with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// The disk is full; nothing of this change was written.
    Full,
    /// The file or its folder cannot be written.
    ReadOnly,
    /// The file is damaged, or no database.
    Corrupt,
    /// The file is empty or shorter than it was: something in it is lost.
    Truncated,
    /// Another process kept it locked for too long.
    Busy,
    /// The file was written by a newer version of this program.
    TooNew,
    /// Anything else.
    Other,
}

impl ContextError {
    /// Says what the caller should do differently.
    pub fn refused(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused(message.into())
    }

    /// Says that something is not there.
    pub fn missing(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Missing(what.into())
    }

    /// Says that a file or a folder cannot be used.
    pub fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File {
            path: path.into(),
            source,
        }
    }

    /// Sorts what SQLite says by what can be done about it.
    pub(crate) fn storage(path: &Path, source: rusqlite::Error) -> Self {
        Self::Storage {
            path: path.to_owned(),
            trouble: Trouble::of(&source),
            source,
        }
    }
}

impl Trouble {
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Other,
        }
    }
}

fn storage_message(trouble: Trouble, path: &Path) -> String {
    let path = path.display();
    match trouble {
        Trouble::Full => format!("the disk of {path} is full; nothing was changed"),
        Trouble::ReadOnly => {
            format!("{path} cannot be written; check the permissions of the file and its folder")
        }
        Trouble::Corrupt => format!(
            "{path} is damaged or no database; move it away, and import an export if there is one"
        ),
        Trouble::Truncated => format!(
            "{path} is empty or cut short; move it away, and import an export if there is one"
        ),
        Trouble::Busy => format!("{path} is locked by another process; try again in a moment"),
        Trouble::TooNew => format!("{path} was written by a newer version of this program"),
        Trouble::Other => format!("the database {path} failed"),
    }
}
