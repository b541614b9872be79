//! Stored and new items.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ContextError, memory_store::ItemNumber, owner::hex};

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// The state of some work.
    Checkpoint,
    /// The fix for an error.
    Remediation,
    /// Instructions for a task.
    Skill,
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Checkpoint, Self::Remediation, Self::Skill];

    /// Returns the name of the kind, as stored and exported.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Remediation => "remediation",
            Self::Skill => "skill",
        }
    }

    /// Returns the prefix of ids of this kind, without the `_`.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Checkpoint => "ckpt",
            Self::Remediation => "rem",
            Self::Skill => "skill",
        }
    }

    /// Returns the kind of an id, or `None` if the text is not an id.
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
                "unknown kind `{name}`; expected `checkpoint`, `remediation` or `skill`"
            ))
        })
    }
}

/// Creates an id: a prefix and sixteen random hexadecimal digits.
pub(crate) fn new_id(prefix: &str) -> String {
    let mut random = [0; 8];
    getrandom::fill(&mut random).expect("the system has random numbers");
    format!("{prefix}_{}", hex(&random))
}

/// A stored item.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryItem {
    /// The number that the store gave it.
    pub number: ItemNumber,
    /// `ckpt_…`, `rem_…` or `skill_…`.
    pub id: String,
    /// The kind.
    pub kind: ItemKind,
    /// The branch that was checked out when it was saved.
    pub branch: String,
    /// The summary of a checkpoint, the error of a remediation, the name of a skill.
    pub title: String,
    /// The content of a checkpoint or a skill, the solution of a remediation.
    pub body: String,
    /// The context of a remediation, the description of a skill.
    pub detail: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Further metadata from the caller.
    pub meta: Map<String, Value>,
    /// The confidence of the caller, from 0 to 1.
    pub confidence: f64,
    /// The number of uses.
    pub usage: u32,
    /// The number of redacted secrets.
    pub redacted: u32,
    /// The time it was first saved, in milliseconds since 1970.
    pub created: i64,
    /// The time it was last saved, in milliseconds since 1970.
    pub updated: i64,
}

impl MemoryItem {
    /// Returns the title, or the first line of a checkpoint without a title.
    pub fn headline(&self) -> &str {
        if self.kind != ItemKind::Checkpoint || self.title != NewItem::DEFAULT_SUMMARY {
            return &self.title;
        }
        let lines = self.body.lines();
        let mut lines = lines.map(|line| line.trim_start_matches(['#', ' ']).trim_end());
        lines.find(|line| !line.is_empty()).unwrap_or(&self.title)
    }
}

/// An item to save. Limits are checked on saving.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewItem {
    /// The kind.
    pub kind: ItemKind,
    /// The checked-out branch.
    pub branch: String,
    /// The summary of a checkpoint, the error of a remediation, the name of a skill.
    pub title: String,
    /// The content of a checkpoint or a skill, the solution of a remediation.
    pub body: String,
    /// The context of a remediation, the description of a skill.
    pub detail: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Further metadata.
    pub meta: Map<String, Value>,
    /// The confidence of the caller, from 0 to 1.
    pub confidence: f64,
}

impl NewItem {
    /// The title of a checkpoint without a title.
    pub const DEFAULT_SUMMARY: &str = "Checkpoint saved";

    /// The state of some work.
    pub fn checkpoint(content: impl Into<String>) -> Self {
        Self::new(
            ItemKind::Checkpoint,
            Self::DEFAULT_SUMMARY.to_owned(),
            content.into(),
        )
    }

    /// The fix for an error.
    pub fn remediation(error: impl Into<String>, solution: impl Into<String>) -> Self {
        Self::new(ItemKind::Remediation, error.into(), solution.into())
    }

    /// Instructions for a task.
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

    /// Sets the title, which is the summary of a checkpoint.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the context of a remediation, or the description of a skill.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Sets the branch; `default` if not called.
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

    /// Sets the confidence, from 0 to 1.
    #[must_use]
    pub fn confidence(mut self, confidence: f64) -> Self {
        self.confidence = confidence;
        self
    }
}
