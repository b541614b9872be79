//! What the context server's files may fail with.

use turnbuckle_context::ContextError;

use super::Failure;
use super::of_client::chain;

impl From<ContextError> for Failure {
    fn from(error: ContextError) -> Self {
        let message = chain(&error);
        match error {
            ContextError::Refused(_) | ContextError::Missing(_) => Self::refused(message),
            _ => Self::not_asked(message),
        }
    }
}
