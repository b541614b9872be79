//! The reasons that a setting of a server is invalid.

/// The page size is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, thiserror::Error)]
#[error("the page size must not be zero")]
#[non_exhaustive]
pub struct InvalidPageSize;

/// The reason that secrets cannot encrypt request state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidStateKeys {
    /// The list is empty.
    #[error("at least one secret is required")]
    Missing,
    /// A secret is too short.
    #[error("a secret must have at least 16 bytes")]
    TooShort,
}
