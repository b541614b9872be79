//! Why something is no skill.

/// Why something is no skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// `SKILL.md` is not text.
    #[error("`SKILL.md` is not UTF-8")]
    NotText,
    /// `SKILL.md` has no head.
    #[error("`SKILL.md` does not begin with a line `---`, a head in YAML and another line `---`")]
    NoHead,
    /// The head of `SKILL.md` cannot be read.
    #[error("the head of `SKILL.md`: {0}")]
    Head(String),
    /// The name is missing or not one that a skill can have.
    #[error(
        "`name` must be 1 to 64 lower-case letters, digits and single hyphens, with no hyphen first or last"
    )]
    Name,
    /// The name and the folder differ.
    #[error("it says `name: {name}`, but its folder is called `{folder}`")]
    OtherName {
        /// What the head says.
        name: String,
        /// The folder it is in.
        folder: String,
    },
    /// Nothing says when to use the skill.
    #[error("`description` must say when to use the skill")]
    Description,
    /// The head uses a name that the protocol keeps for itself.
    #[error("`metadata` has the key `{0}`, whose prefix is reserved")]
    Reserved(String),
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
