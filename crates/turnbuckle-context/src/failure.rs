//! What a caller is told of an error: how to go on, and nothing about other people's files.

use std::io;
use std::path::Path;

use turnbuckle_server::{RequestError, ToolError};

use crate::answer::visible;
use crate::{ContextError, Trouble};

/// Makes of an error what a model reads. What happened underneath goes to the log.
pub(crate) fn for_model(error: ContextError) -> ToolError {
    let told = ToolError::new(message(&error));
    match error {
        ContextError::Refused(_)
        | ContextError::Missing(_)
        | ContextError::Cancelled
        | ContextError::TimedOut(_) => told,
        error => told.caused_by(error),
    }
}

/// What is written down of an error for whoever asks later.
pub(crate) fn message(error: &ContextError) -> String {
    match error {
        ContextError::Refused(_)
        | ContextError::Missing(_)
        | ContextError::Cancelled
        | ContextError::TimedOut(_) => error.to_string(),
        ContextError::Storage { trouble, .. } => advice(*trouble).to_owned(),
        ContextError::File { path, source } => {
            let (name, cause) = (name(path), cause(source));
            let name = visible(&name);
            if is_out_of_descriptors(source) {
                return format!(
                    "`{name}` cannot be opened now ({cause}); try again in a moment, and tell the user if it lasts"
                );
            }
            format!(
                "`{name}` cannot be used ({cause}); tell the user to check that it is there and may be read"
            )
        }
        ContextError::Embedding(_) | ContextError::EmbeddingRefused(_) => {
            "the embeddings cannot be had now; try again later".to_owned()
        }
    }
}

/// Makes of an error what the reader of a resource or a prompt gets.
pub(crate) fn for_reader(error: ContextError) -> RequestError {
    match error {
        ContextError::Refused(message) => RequestError::invalid(message),
        ContextError::Missing(_) => RequestError::not_found(),
        error => RequestError::internal(error),
    }
}

/// What can be done about a database. Its path is the operator's business, and in the log.
fn advice(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Full => {
            "the disk is full and nothing was saved; tell the user to free some space, then try again"
        }
        Trouble::ReadOnly => {
            "the data folder of this server cannot be written and nothing was saved; tell the user to check its permissions"
        }
        Trouble::Corrupt => {
            "the file that keeps this project's memory is damaged; tell the user to move it away and import an export, if there is one (the server's log names the file)"
        }
        Trouble::Truncated => {
            "the file that keeps this project's memory is damaged: it is empty or cut short; tell the user to move it away and import an export, if there is one (the server's log names the file)"
        }
        Trouble::Busy => {
            "another process keeps the file of this project locked; nothing was saved, try again in a moment"
        }
        Trouble::TooNew => {
            "the file of this project was written by a newer version of this server; tell the user to update it"
        }
        Trouble::Other => "the database failed and nothing was saved; the server's log says why",
    }
}

/// What went wrong with a file, in the words of the system; those of others may have a path in them.
fn cause(error: &io::Error) -> String {
    if error.raw_os_error().is_none() {
        return error.kind().to_string();
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

/// Returns whether this process or the system has too many open files, which passes.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE have these numbers on every Unix; on Windows they are other errors.
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// The last part of a path: what a caller may know of it.
fn name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_else(|| "a folder".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn too_many_open_files_are_called_by_their_name() {
        let error = |code| ContextError::File {
            path: "/srv/data/notes.md".into(),
            source: io::Error::from_raw_os_error(code),
        };

        assert_eq!(
            message(&error(24)),
            "`notes.md` cannot be opened now (too many open files); try again in a moment, and tell the user if it lasts"
        );
        let other = message(&error(40));
        assert!(!other.contains("uncategorized"), "{other}");
        assert!(!other.contains("os error"), "{other}");
    }

    #[test]
    fn no_path_of_ours_is_told() {
        let errors = [
            ContextError::file(
                "/home/ada/.local/share/x.db",
                std::io::ErrorKind::PermissionDenied.into(),
            ),
            ContextError::storage(
                Path::new("/home/ada/.local/share/x.db"),
                rusqlite::Error::InvalidQuery,
            ),
        ];
        for error in errors {
            let told = for_model(error).to_string();
            assert!(!told.contains("/home"), "{told}");
        }
    }

    #[test]
    fn every_trouble_has_its_advice() {
        use Trouble::{Busy, Corrupt, Full, Other, ReadOnly, TooNew, Truncated};
        for trouble in [Full, ReadOnly, Corrupt, Truncated, Busy, TooNew, Other] {
            assert!(advice(trouble).len() > 40);
        }
    }
}
