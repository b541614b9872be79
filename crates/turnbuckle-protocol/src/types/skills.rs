//! Skills: folders of instructions and files that a model reads when it needs them.
//!
//! The extension `io.modelcontextprotocol/skills` (SEP-2640). Its files are resources; what is here says which of them
//! make up a skill, and what is in a folder.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Unexpected, Visitor, value::SeqAccessDeserializer},
};

use super::{CacheScope, Cursor, JsonObject, Resource, number::integer, setters::setters};
use crate::meta::Meta;

/// The identifier of the skills extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";

/// The media type of a folder among resources.
pub const DIRECTORY: &str = "inode/directory";

/// The word that stands in place of a list of files.
const DYNAMIC: &str = "dynamic";

/// A skill, as a list shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkillEntry {
    /// The address of its `SKILL.md`.
    pub uri: String,
    /// What the head of that file says, `name` and `description` at least.
    pub frontmatter: JsonObject,
    /// All files of the skill, or that they are not fixed.
    pub resources: SkillResources,
}

impl SkillEntry {
    /// Creates an entry from the address of its `SKILL.md`, what that says, and its files.
    pub fn new(
        uri: impl Into<String>,
        frontmatter: JsonObject,
        resources: impl Into<SkillResources>,
    ) -> Self {
        Self {
            uri: uri.into(),
            frontmatter,
            resources: resources.into(),
        }
    }

    /// Returns the name that the skill gives itself.
    pub fn name(&self) -> Option<&str> {
        self.frontmatter.get("name")?.as_str()
    }

    /// Returns what the skill says about when to use it.
    pub fn description(&self) -> Option<&str> {
        self.frontmatter.get("description")?.as_str()
    }
}

/// Which files a skill has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SkillResources {
    /// Exactly these, `SKILL.md` among them.
    Files(Vec<SkillResource>),
    /// They are made when they are read, so nothing can be said about them in advance.
    Dynamic,
}

impl Default for SkillResources {
    fn default() -> Self {
        Self::Files(Vec::new())
    }
}

impl From<Vec<SkillResource>> for SkillResources {
    fn from(files: Vec<SkillResource>) -> Self {
        Self::Files(files)
    }
}

impl Serialize for SkillResources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Files(files) => files.serialize(serializer),
            Self::Dynamic => serializer.serialize_str(DYNAMIC),
        }
    }
}

impl<'de> Deserialize<'de> for SkillResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FilesOrWord;

        impl<'de> Visitor<'de> for FilesOrWord {
            type Value = SkillResources;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("array of files or \"dynamic\"")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, files: A) -> Result<SkillResources, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(files)).map(SkillResources::Files)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<SkillResources, E> {
                match word {
                    DYNAMIC => Ok(SkillResources::Dynamic),
                    other => Err(E::invalid_value(Unexpected::Str(other), &self)),
                }
            }
        }

        deserializer.deserialize_any(FilesOrWord)
    }
}

/// A file of a skill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkillResource {
    /// Its address.
    pub uri: String,
    /// The hash of its bytes: `sha256:` and 64 lower-case hexadecimal digits.
    pub digest: String,
    /// How many bytes it has.
    #[serde(deserialize_with = "integer::required")]
    pub size: u64,
}

impl SkillResource {
    /// Creates a file from its address, the hash of its bytes and their number.
    pub fn new(uri: impl Into<String>, digest: impl Into<String>, size: u64) -> Self {
        Self {
            uri: uri.into(),
            digest: digest.into(),
            size,
        }
    }
}

/// The result of `skills/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListSkillsResult {
    /// One page of skills.
    pub skills: Vec<SkillEntry>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// For how many milliseconds the answer may be reused.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListSkillsResult {
    /// Creates a page.
    pub fn new(skills: impl Into<Vec<SkillEntry>>) -> Self {
        Self {
            skills: skills.into(),
            ..Self::default()
        }
    }
}

setters!(ListSkillsResult {
    optional {
        next_cursor: Cursor,
        ttl_ms: u64,
        cache_scope: CacheScope,
    }
    plain { meta: Meta }
});

/// Parameters of `skills/get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GetSkillParams {
    /// The address of a `SKILL.md`.
    pub uri: String,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetSkillParams {
    /// Asks for the skill whose `SKILL.md` has this address.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}

setters!(GetSkillParams { plain { meta: Meta } });

/// The result of `skills/get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetSkillResult {
    /// The skill.
    pub skill: SkillEntry,
    /// For how many milliseconds the answer may be reused.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetSkillResult {
    /// Creates a result.
    pub fn new(skill: SkillEntry) -> Self {
        Self {
            skill,
            ..Self::default()
        }
    }
}

setters!(GetSkillResult {
    optional {
        ttl_ms: u64,
        cache_scope: CacheScope,
    }
    plain { meta: Meta }
});

/// Parameters of `resources/directory/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadDirectoryParams {
    /// The address of the folder.
    pub uri: String,
    /// Where to continue; absent for the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ReadDirectoryParams {
    /// Asks what is in a folder.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}

setters!(ReadDirectoryParams {
    optional { cursor: Cursor }
    plain { meta: Meta }
});

/// The result of `resources/directory/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadDirectoryResult {
    /// One page of what is directly in the folder; folders have the media type [`DIRECTORY`].
    pub resources: Vec<Resource>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// For how many milliseconds the answer may be reused.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ReadDirectoryResult {
    /// Creates a page.
    pub fn new(resources: impl Into<Vec<Resource>>) -> Self {
        Self {
            resources: resources.into(),
            ..Self::default()
        }
    }
}

setters!(ReadDirectoryResult {
    optional {
        next_cursor: Cursor,
        ttl_ms: u64,
        cache_scope: CacheScope,
    }
    plain { meta: Meta }
});
