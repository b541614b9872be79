//! A skill that is given by hand, wherever it is kept.

use std::collections::BTreeMap;

use bytes::Bytes;
use turnbuckle_protocol::{skills::Frontmatter, types::skills::MANIFEST};

use super::{
    MOST_BYTES, MOST_FILES, address,
    error::SkillError,
    shelf::{Body, File, Volume},
};

/// A skill that is given by hand: instructions, and the files that they speak of.
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
/// # let _ = Skills::of([tea]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Skill {
    head: Frontmatter,
    /// The names of the folders above that of the skill.
    above: Vec<String>,
    files: BTreeMap<String, Bytes>,
}

impl Skill {
    /// A skill from its name, a description that says when to use it, and its instructions in Markdown.
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

    /// A skill from the whole text of its `SKILL.md`, head and all.
    pub fn parse(markdown: impl Into<String>) -> Result<Self, SkillError> {
        let markdown = markdown.into();
        let skill = Self {
            head: Frontmatter::of(&markdown)?,
            above: Vec::new(),
            files: BTreeMap::from([(MANIFEST.to_owned(), markdown.into())]),
        };
        skill.within_limits()
    }

    /// Puts the skill into a folder, or a path of folders: `drinks/hot`.
    pub fn under(mut self, path: &str) -> Result<Self, SkillError> {
        let above: Vec<_> = path.split('/').map(str::to_owned).collect();
        if !above.iter().all(|name| address::is_name(name)) {
            return Err(SkillError::Path(path.to_owned()));
        }
        self.above = above;
        Ok(self)
    }

    /// Adds a file at a path inside the skill: `references/pots.md`. One at the same path is replaced.
    pub fn file(
        mut self,
        path: impl Into<String>,
        content: impl Into<Bytes>,
    ) -> Result<Self, SkillError> {
        let path = path.into();
        let is_free = |files: &BTreeMap<String, Bytes>| {
            files
                .keys()
                .all(|other| !is_above(other, &path) && !is_above(&path, other))
        };
        if path == MANIFEST || !path.split('/').all(address::is_name) || !is_free(&self.files) {
            return Err(SkillError::Path(path));
        }
        self.files.insert(path, content.into());
        self.within_limits()
    }

    /// The name of the skill.
    pub fn name(&self) -> &str {
        &self.head.name
    }

    /// What the skill says about when to use it.
    pub fn description(&self) -> &str {
        &self.head.description
    }

    /// The address of its `SKILL.md`.
    pub fn uri(&self) -> String {
        address::below(&self.folder(), MANIFEST)
    }

    fn folder(&self) -> String {
        let names = self.above.iter().chain([&self.head.name]);
        address::of(names.map(String::as_str))
    }

    fn within_limits(self) -> Result<Self, SkillError> {
        if self.files.len() > MOST_FILES {
            return Err(SkillError::TooManyFiles);
        }
        let bytes: u64 = self.files.values().map(|bytes| bytes.len() as u64).sum();
        if bytes > MOST_BYTES {
            return Err(SkillError::TooLarge);
        }
        Ok(self)
    }

    pub(super) fn into_volume(self) -> Volume {
        let folder = self.folder();
        let files = self.files.into_iter().map(|(path, bytes)| {
            let uri = address::below(&folder, &path);
            File::new(uri, &bytes, Body::Held(bytes.clone()))
        });
        let files = files.collect();
        Volume {
            folder,
            head: self.head.into(),
            files,
        }
    }
}

/// Says whether one path is that of a folder on the way to the other.
fn is_above(path: &str, other: &str) -> bool {
    other
        .strip_prefix(path)
        .is_some_and(|rest| rest.starts_with('/'))
}
