//! Error messages for callers: what to do next, without paths of the server.

use std::{error::Error as _, io, path::Path};

use turnbuckle_server::{RequestError, ToolError};

use super::display::sanitize;
use crate::{ContextError, DatabaseErrorKind, error::DatabaseErrorText};

/// Converts an error to a tool error for the model. The underlying cause goes to the log.
pub(crate) fn tool_error(error: ContextError) -> ToolError {
    let tool_error = ToolError::new(error_message(&error));
    if error.source().is_some() {
        tool_error.caused_by(error)
    } else {
        tool_error
    }
}

/// Returns the message that is also stored with a failed operation.
pub(crate) fn error_message(error: &ContextError) -> String {
    match error {
        ContextError::InvalidRequest(_)
        | ContextError::NotFound(_)
        | ContextError::Cancelled
        | ContextError::TimedOut(_) => error.to_string(),
        ContextError::Database { kind, path, .. } => {
            DatabaseErrorText::new(*kind, path).for_caller.to_owned()
        }
        ContextError::MemoryStore(error) => error.caller_message().to_owned(),
        ContextError::File { path, source } => {
            let (name, cause) = (file_name(path), io_cause(source));
            let name = sanitize(&name);
            if DatabaseErrorKind::from_io(source).is_some() {
                return format!(
                    "`{name}` cannot be opened now ({cause}); try again in a moment, and tell the user if the error persists"
                );
            }
            format!(
                "`{name}` cannot be used ({cause}); tell the user to check that it exists and is readable"
            )
        }
        ContextError::Embedding(_) | ContextError::EmbeddingRejected(_) => {
            "embeddings are unavailable; try again later".to_owned()
        }
    }
}

/// Converts an error for `resources/read` and `prompts/get`.
pub(crate) fn request_error(error: ContextError) -> RequestError {
    match error {
        ContextError::InvalidRequest(message) => RequestError::invalid(message),
        ContextError::NotFound(_) => RequestError::not_found(),
        error => RequestError::internal(error),
    }
}

/// Returns the system's message for an I/O error. Messages from other sources may contain a path.
fn io_cause(error: &io::Error) -> String {
    if error.raw_os_error().is_none() {
        return error.kind().to_string();
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

/// Returns the last component of a path, which callers may see.
fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_else(|| "a folder".to_owned())
}

#[cfg(test)]
mod tests {
    use DatabaseErrorKind::{
        Busy, Corrupt, Full, Other, ProcessFileLimit, ReadOnly, SystemFileLimit, TooNew, Truncated,
    };

    use super::*;

    #[cfg(unix)]
    #[test]
    fn too_many_open_files_are_reported_as_such() {
        let error = |code| ContextError::File {
            path: "/srv/data/notes.md".into(),
            source: io::Error::from_raw_os_error(code),
        };

        assert_eq!(
            error_message(&error(24)),
            "`notes.md` cannot be opened now (too many open files); try again in a moment, and tell the user if the error persists"
        );
        let other = error_message(&error(40));
        assert!(!other.contains("uncategorized"), "{other}");
        assert!(!other.contains("os error"), "{other}");
    }

    #[test]
    fn messages_do_not_contain_paths_of_the_server() {
        let errors = [
            ContextError::file(
                "/home/ada/.local/share/x.db",
                std::io::ErrorKind::PermissionDenied.into(),
            ),
            ContextError::database(
                Path::new("/home/ada/.local/share/x.db"),
                rusqlite::Error::InvalidQuery,
            ),
        ];
        for error in errors {
            let message = tool_error(error).to_string();
            assert!(!message.contains("/home"), "{message}");
        }
    }

    #[test]
    fn every_database_error_has_a_text_with_the_path_and_one_without() {
        for kind in [
            Full,
            ReadOnly,
            Corrupt,
            Truncated,
            Busy,
            TooNew,
            ProcessFileLimit,
            SystemFileLimit,
            Other,
        ] {
            let text = DatabaseErrorText::new(kind, Path::new("/home/ada/x.db"));
            assert!(text.for_caller.len() > 40 && !text.for_caller.contains("/home"));
            assert!(text.for_operator.contains("/home/ada/x.db"));
        }
    }
}
