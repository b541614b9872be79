//! Why something is no skill.

use turnbuckle_protocol::skills::FrontmatterError;

/// Why something is no skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// `SKILL.md` is not text.
    #[error("`SKILL.md` is not UTF-8")]
    NotText,
    /// The head of `SKILL.md` is missing or says something wrong.
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    /// The name and the folder differ.
    #[error("it says `name: {name}`, but its folder is called `{folder}`")]
    OtherName {
        /// What the head says.
        name: String,
        /// The folder it is in.
        folder: String,
    },
    /// A path is not relative, leads elsewhere, or is taken.
    #[error("`{0}` is no path of a file inside the skill")]
    Path(String),
    /// It has more files than clients need to accept.
    #[error("it has more than 512 files")]
    TooManyFiles,
    /// It has more bytes than clients need to accept.
    #[error("it has more than 16 MiB")]
    TooLarge,
}
