//! What the context server's files may fail with.

use std::error::Error;

use turnbuckle_context::ContextError;

use super::Failure;

impl From<ContextError> for Failure {
    fn from(error: ContextError) -> Self {
        let message = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        match error {
            ContextError::Refused(_) | ContextError::Missing(_) => Self::refused(message),
            _ => Self::not_asked(message),
        }
    }
}
