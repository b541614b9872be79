//! Skills created in code, and the URIs of all skills.
//!
//! URIs are never converted to paths: a requested URI is looked up among the published ones.

use std::collections::BTreeMap;

use bytes::Bytes;
use turnbuckle_protocol::{
    skills::{Frontmatter, FrontmatterError},
    types::skills::MANIFEST,
};
use turnbuckle_text::percent::encode_segment;

use super::{
    MAX_BYTES, MAX_FILES,
    snapshot::{FileBody, LoadedSkill, SkillFile},
};

/// A skill created in code: instructions and files.
///
/// ```
/// use turnbuckle_server::{Skill, Skills};
///
/// # fn main() -> Result<(), turnbuckle_server::SkillError> {
/// let tea = Skill::new("tea", "How to brew tea. Use it when someone is thirsty.", "Boil water.")?
///     .under("drinks")?
///     .file("references/pots.md", "A pot holds four cups.")?;
///
/// assert_eq!(tea.uri(), "skill://drinks/tea/SKILL.md");
/// # let _ = Skills::new([tea]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Skill {
    frontmatter: Frontmatter,
    /// The names of the parent folders.
    parents: Vec<String>,
    files: BTreeMap<String, Bytes>,
}

impl Skill {
    /// Creates a skill from its name, a description of when to use it, and instructions in Markdown.
    pub fn new(
        name: impl AsRef<str>,
        description: impl AsRef<str>,
        instructions: impl AsRef<str>,
    ) -> Result<Self, SkillError> {
        // Every JSON string is a YAML scalar.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        Self::parse(format!(
            "---\nname: {}\ndescription: {}\n---\n\n{}",
            quoted(name.as_ref()),
            quoted(description.as_ref()),
            instructions.as_ref(),
        ))
    }

    /// Creates a skill from the text of its `SKILL.md`, including the frontmatter.
    pub fn parse(markdown: impl Into<String>) -> Result<Self, SkillError> {
        let markdown = markdown.into();
        let skill = Self {
            frontmatter: Frontmatter::parse(&markdown)?,
            parents: Vec::new(),
            files: BTreeMap::from([(MANIFEST.to_owned(), markdown.into())]),
        };
        skill.check_limits()
    }

    /// Places the skill below a path of folders: `drinks/hot`.
    pub fn under(mut self, path: &str) -> Result<Self, SkillError> {
        let parents: Vec<_> = path.split('/').map(str::to_owned).collect();
        if !parents.iter().all(|name| is_name(name)) {
            return Err(SkillError::InvalidPath(path.to_owned()));
        }
        self.parents = parents;
        Ok(self)
    }

    /// Adds a file at a path inside the skill: `references/pots.md`. A file with the same path is replaced.
    pub fn file(
        mut self,
        path: impl Into<String>,
        content: impl Into<Bytes>,
    ) -> Result<Self, SkillError> {
        let path = path.into();
        let is_free = |files: &BTreeMap<String, Bytes>| {
            files
                .keys()
                .all(|other| !is_ancestor(other, &path) && !is_ancestor(&path, other))
        };
        if path == MANIFEST || !path.split('/').all(is_name) || !is_free(&self.files) {
            return Err(SkillError::InvalidPath(path));
        }
        self.files.insert(path, content.into());
        self.check_limits()
    }

    /// The name of the skill.
    pub fn name(&self) -> &str {
        &self.frontmatter.name
    }

    /// The description of when to use the skill.
    pub fn description(&self) -> &str {
        &self.frontmatter.description
    }

    /// The URI of its `SKILL.md`.
    pub fn uri(&self) -> String {
        join_uri(&self.folder(), MANIFEST)
    }

    fn folder(&self) -> String {
        let names = self.parents.iter().chain([&self.frontmatter.name]);
        uri_from_names(names.map(String::as_str))
    }

    fn check_limits(self) -> Result<Self, SkillError> {
        if self.files.len() > MAX_FILES {
            return Err(SkillError::TooManyFiles);
        }
        let bytes: u64 = self.files.values().map(|bytes| bytes.len() as u64).sum();
        if bytes > MAX_BYTES {
            return Err(SkillError::TooLarge);
        }
        Ok(self)
    }

    pub(super) fn into_loaded(self) -> LoadedSkill {
        let folder = self.folder();
        let files = self.files.into_iter().map(|(path, bytes)| {
            let uri = join_uri(&folder, &path);
            SkillFile::new(uri, &bytes, FileBody::InMemory(bytes.clone()))
        });
        let files = files.collect();
        LoadedSkill {
            folder,
            frontmatter: self.frontmatter.into(),
            files,
        }
    }
}

/// Returns whether `path` is a parent folder of `other`.
fn is_ancestor(path: &str, other: &str) -> bool {
    other
        .strip_prefix(path)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// The reason that a skill is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// `SKILL.md` is not UTF-8.
    #[error("`SKILL.md` is not UTF-8")]
    NotUtf8,
    /// The frontmatter of `SKILL.md` is missing or invalid.
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    /// The name differs from the folder.
    #[error("the frontmatter says `name: {name}`, but the folder is `{folder}`")]
    NameMismatch {
        /// The name in the frontmatter.
        name: String,
        /// The name of the folder.
        folder: String,
    },
    /// The path is not relative, leaves the skill, or is in use.
    #[error("`{0}` is not a valid path inside the skill")]
    InvalidPath(String),
    /// More files than clients need to accept.
    #[error("the skill has more than 512 files")]
    TooManyFiles,
    /// More bytes than clients need to accept.
    #[error("the skill is larger than 16 MiB")]
    TooLarge,
}

/// The prefix of all skill URIs.
pub(super) const URI_SCHEME: &str = "skill://";

/// Returns the URI of a path of names below the root.
pub(super) fn uri_from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut uri = URI_SCHEME.to_owned();
    for (at, name) in names.into_iter().enumerate() {
        if at > 0 {
            uri.push('/');
        }
        uri.push_str(&encode_segment(name));
    }
    uri
}

/// Returns the URI of a path inside of a folder.
pub(super) fn join_uri(folder: &str, path: &str) -> String {
    let mut uri = folder.to_owned();
    for name in path.split('/') {
        uri.push('/');
        uri.push_str(&encode_segment(name));
    }
    uri
}

/// Returns the URI of the parent folder, unless it is the root.
pub(super) fn parent_uri(uri: &str) -> Option<&str> {
    let (parent, _) = uri.rsplit_once('/')?;
    (parent.len() > URI_SCHEME.len()).then_some(parent)
}

/// Returns whether a name is allowed in a path.
pub(super) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name
            .chars()
            .any(|char| char.is_control() || char == '/' || char == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_folders_found() {
        assert_eq!(
            uri_from_names(["a b", "ü", "tea"]),
            "skill://a%20b/%C3%BC/tea"
        );
        assert_eq!(
            join_uri("skill://tea", "pots/100%.md"),
            "skill://tea/pots/100%25.md"
        );
        assert_eq!(parent_uri("skill://tea/pots"), Some("skill://tea"));
        assert_eq!(parent_uri("skill://tea"), None);
    }

    #[test]
    fn invalid_file_names_are_rejected() {
        for name in ["", ".", "..", "a/b", "a\\b", "a\0", "a\nb"] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_name("..a") && is_name("ü b.md"));
    }
}
