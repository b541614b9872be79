//! Skills: folders with instructions and files for models.
//!
//! The extension `io.modelcontextprotocol/skills` (SEP-2640). The files of a skill are resources; the types here list
//! the files of a skill and the entries of a folder.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Unexpected, Visitor, value::SeqAccessDeserializer},
};

use super::{CacheScope, Cursor, JsonObject, Resource, lenient_number::integer};
use crate::meta::Meta;

/// The identifier of the skills extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";

/// The media type of a folder among resources.
pub const DIRECTORY: &str = "inode/directory";

/// The value in place of a list of files.
const DYNAMIC: &str = "dynamic";

/// A skill, as returned by `skills/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkillEntry {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The front matter of that file, with at least `name` and `description`.
    pub frontmatter: JsonObject,
    /// All files of the skill, or `dynamic`.
    pub resources: SkillResources,
}

impl SkillEntry {
    /// Creates an entry from the URI of its `SKILL.md`, its front matter and its files.
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

    /// Returns the name of the skill.
    pub fn name(&self) -> Option<&str> {
        self.frontmatter.get("name")?.as_str()
    }

    /// Returns the description of the skill.
    pub fn description(&self) -> Option<&str> {
        self.frontmatter.get("description")?.as_str()
    }
}

/// The files of a skill.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SkillResources {
    /// A fixed list, including `SKILL.md`.
    Files(Vec<SkillResource>),
    /// Generated on read, so they cannot be listed.
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
    /// The URI.
    pub uri: String,
    /// The digest of its bytes: `sha256:` and 64 lower-case hexadecimal digits.
    pub digest: String,
    /// The size in bytes.
    #[serde(deserialize_with = "integer::required")]
    pub size: u64,
}

impl SkillResource {
    /// Creates a file from its URI, digest and size.
    pub fn new(uri: impl Into<String>, digest: impl Into<String>, size: u64) -> Self {
        Self {
            uri: uri.into(),
            digest: digest.into(),
            size,
        }
    }
}

list_result! {
    /// The result of `skills/list`.
    pub struct ListSkillsResult {
        /// One page of skills.
        pub skills: Vec<SkillEntry>,
    }
}

/// Parameters of `skills/get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GetSkillParams {
    /// The URI of a `SKILL.md`.
    pub uri: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetSkillParams {
    /// Requests the skill with this `SKILL.md`.
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
    /// The number of milliseconds for which the result may be cached.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// The scope of the cached result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The `_meta` object.
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
    /// The URI of the folder.
    pub uri: String,
    /// The cursor of the page; absent for the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ReadDirectoryParams {
    /// Requests the entries of a folder.
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
    /// One page of the direct entries of the folder; folders have the media type [`DIRECTORY`].
    pub resources: Vec<Resource>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// The number of milliseconds for which the result may be cached.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// The scope of the cached result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The `_meta` object.
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
