//! One thing that is remembered, and the draft that it is made from.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ContextError;

/// What kind of thing is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// Where some work stands.
    Checkpoint,
    /// How an error was overcome.
    Remediation,
    /// How something is done.
    Skill,
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Checkpoint, Self::Remediation, Self::Skill];

    /// The name of the kind, as it is stored and exported.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Remediation => "remediation",
            Self::Skill => "skill",
        }
    }

    /// What the ids of this kind begin with, before the `_`.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Checkpoint => "ckpt",
            Self::Remediation => "rem",
            Self::Skill => "skill",
        }
    }

    /// The kind that an id tells of itself, if it looks like an id at all.
    pub fn from_id(id: &str) -> Option<Self> {
        let (prefix, rest) = id.split_once('_')?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let looks_right = rest.len() == 16 && rest.bytes().all(is_hex);
        let kind = Self::ALL.into_iter().find(|kind| kind.prefix() == prefix);
        kind.filter(|_| looks_right)
    }
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ItemKind {
    type Err = ContextError;

    fn from_str(name: &str) -> Result<Self, ContextError> {
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == name);
        kind.ok_or_else(|| {
            ContextError::invalid(format!(
                "`{name}` is no kind of memory; there are checkpoint, remediation and skill"
            ))
        })
    }
}

/// One thing that is remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryItem {
    /// Its number in the tables; see `stored.rs`.
    pub(crate) row: i64,
    /// `ckpt_…`, `rem_…` or `skill_…`.
    pub id: String,
    /// What kind of thing it is.
    pub kind: ItemKind,
    /// The branch it was saved on.
    pub branch: String,
    /// The summary of a checkpoint, the error of a remediation, the name of a skill.
    pub title: String,
    /// The content of a checkpoint or a skill, the solution of a remediation.
    pub body: String,
    /// The context of a remediation, the description of a skill.
    pub detail: String,
    /// Words to sort it by.
    pub tags: Vec<String>,
    /// Whatever else the caller wanted kept.
    pub meta: Map<String, Value>,
    /// How sure one was of it, from 0 to 1.
    pub confidence: f64,
    /// How often it was of use.
    pub usage: u32,
    /// How many secrets were taken out of it.
    pub redacted: u32,
    /// When it was first saved; milliseconds since 1970.
    pub created: i64,
    /// When it was last saved; milliseconds since 1970.
    pub updated: i64,
}

impl MemoryItem {
    /// What it is about, in a line: its title, or the first line of a checkpoint that was given none.
    pub fn headline(&self) -> &str {
        if self.kind != ItemKind::Checkpoint || self.title != NewItem::DEFAULT_SUMMARY {
            return &self.title;
        }
        let lines = self.body.lines();
        let mut lines = lines.map(|line| line.trim_start_matches(['#', ' ']).trim_end());
        lines.find(|line| !line.is_empty()).unwrap_or(&self.title)
    }
}

/// Something that shall be remembered. Limits are checked when it is saved.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewItem {
    /// What kind of thing it is.
    pub kind: ItemKind,
    /// The branch that is checked out.
    pub branch: String,
    /// The summary of a checkpoint, the error of a remediation, the name of a skill.
    pub title: String,
    /// The content of a checkpoint or a skill, the solution of a remediation.
    pub body: String,
    /// The context of a remediation, the description of a skill.
    pub detail: String,
    /// Words to sort it by.
    pub tags: Vec<String>,
    /// Whatever else the caller wants kept.
    pub meta: Map<String, Value>,
    /// How sure the caller is of it, from 0 to 1.
    pub confidence: f64,
}

impl NewItem {
    /// The title of a checkpoint that was given none.
    pub const DEFAULT_SUMMARY: &str = "Checkpoint saved";

    /// Where some work stands.
    pub fn checkpoint(content: impl Into<String>) -> Self {
        Self::new(
            ItemKind::Checkpoint,
            Self::DEFAULT_SUMMARY.to_owned(),
            content.into(),
        )
    }

    /// How an error was overcome.
    pub fn remediation(error: impl Into<String>, solution: impl Into<String>) -> Self {
        Self::new(ItemKind::Remediation, error.into(), solution.into())
    }

    /// How something is done.
    pub fn skill(
        name: impl Into<String>,
        description: impl Into<String>,
        content: impl Into<String>,
    ) -> Self {
        Self::new(ItemKind::Skill, name.into(), content.into()).detail(description)
    }

    fn new(kind: ItemKind, title: String, body: String) -> Self {
        Self {
            kind,
            branch: "default".to_owned(),
            title,
            body,
            detail: String::new(),
            tags: Vec::new(),
            meta: Map::new(),
            confidence: 1.0,
        }
    }

    /// Gives it another title: the summary of a checkpoint.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Adds the context of a remediation, or the description of a skill.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Says which branch is checked out; `default` otherwise.
    #[must_use]
    pub fn branch(mut self, branch: impl Into<String>) -> Self {
        self.branch = branch.into();
        self
    }

    /// Adds tags.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags.extend(tags.into_iter().map(Into::into));
        self
    }

    /// Adds metadata.
    #[must_use]
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta.extend(meta);
        self
    }

    /// Says how sure the caller is of it, from 0 to 1.
    #[must_use]
    pub fn confidence(mut self, confidence: f64) -> Self {
        self.confidence = confidence;
        self
    }
}
