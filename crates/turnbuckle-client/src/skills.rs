//! Skills: directories of instructions and files that a model reads on demand.
//!
//! Nothing is read in advance: a list contains names and descriptions, [`Client::read_skill`] reads the instructions of
//! one skill, and [`Skill::file`] reads one file. Every file is verified against the list; a skill that fails
//! verification is not read any further.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use turnbuckle_protocol::{
    method::Method,
    skills::{Frontmatter, FrontmatterError, digest},
    types::{
        JsonObject, PaginatedParams, ReadResourceResult, Resource, ResourceContents,
        skills::{
            EXTENSION, GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams,
            ReadDirectoryResult, SkillEntry, SkillResource, SkillResources,
        },
    },
};

use crate::{
    call::{Call, CallOptions, Pages},
    client::Client,
    error::CallError,
};

/// A skill with verified instructions.
pub struct Skill {
    client: Client,
    entry: SkillEntry,
    name: String,
    text: String,
}

impl Skill {
    /// Reads the `SKILL.md` of an entry, and nothing else.
    async fn read(client: Client, entry: SkillEntry) -> Result<Self, SkillError> {
        let bytes = read_checked(&client, &entry, &entry.uri).await?;
        let head = check_head(&entry, &bytes)?;
        let text = String::from_utf8(bytes).map_err(|_| SkillMismatch::NotText)?;
        Ok(Self {
            client,
            entry,
            name: head.name,
            text,
        })
    }

    /// Returns the name of the skill.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text of its `SKILL.md`, including the frontmatter.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the listed entry.
    pub fn entry(&self) -> &SkillEntry {
        &self.entry
    }

    /// Returns the files of the skill, including `SKILL.md`; empty if the server generates them on demand.
    pub fn files(&self) -> &[SkillResource] {
        match &self.entry.resources {
            SkillResources::Files(files) => files,
            _ => &[],
        }
    }

    /// Reads a file of the skill by its URI.
    pub async fn file(&self, uri: &str) -> Result<Vec<u8>, SkillError> {
        read_checked(&self.client, &self.entry, uri).await
    }
}

impl fmt::Debug for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skill")
            .field("uri", &self.entry.uri)
            .finish_non_exhaustive()
    }
}

/// A skill cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The request failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The skill does not match the list.
    #[error("the skill does not match the list: {0}")]
    Mismatch(#[from] SkillMismatch),
}

/// Reads a file of a skill and verifies it.
async fn read_checked(
    client: &Client,
    entry: &SkillEntry,
    uri: &str,
) -> Result<Vec<u8>, SkillError> {
    // A file that is not listed is not requested.
    let file = listed(entry, uri)?;
    let read = client.read_resource(uri).await?;
    let bytes = contents(read, uri)?;
    if let Some(file) = file {
        check_file(file, &bytes)?;
    }
    Ok(bytes)
}

/// Returns the bytes of the requested file.
fn contents(read: ReadResourceResult, uri: &str) -> Result<Vec<u8>, SkillMismatch> {
    let mut found = read.contents.into_iter();
    let found = found.find(|contents| contents.uri() == uri);
    let bytes = match found {
        Some(ResourceContents::Text(contents)) => Some(contents.text.into_bytes()),
        Some(ResourceContents::Blob(contents)) => STANDARD.decode(contents.blob).ok(),
        None => None,
    };
    bytes.ok_or_else(|| SkillMismatch::NotTheFile {
        uri: uri.to_owned(),
    })
}

static LIST: Method = Method::for_extension("skills/list");
static GET: Method = Method::for_extension("skills/get");
static READ_DIRECTORY: Method = Method::for_extension("resources/directory/read");

impl Client {
    /// Lists the skills of the server, page by page. None of their files is read.
    pub fn skills(&self) -> Pages<SkillEntry> {
        self.pages(&LIST, |client, cursor| {
            let page = client.list_skills(cursor);
            async move { page.await.map(|page| (page.skills, page.next_cursor)) }
        })
    }

    /// Lists one page of skills.
    pub fn list_skills(&self, cursor: Option<String>) -> Call<ListSkillsResult> {
        let mut params = PaginatedParams::new();
        params.cursor = cursor;
        Call::new(self, async move |client: Client, options: CallOptions| {
            client.require_skills(&LIST)?;
            client.request(&LIST, params, &options).await
        })
    }

    /// Returns one skill by the URI of its `SKILL.md`, as a list would contain it.
    pub fn skill(&self, uri: impl Into<String>) -> Call<SkillEntry> {
        let params = GetSkillParams::new(uri);
        Call::new(self, async move |client: Client, options: CallOptions| {
            client.require_skills(&GET)?;
            let uri = params.uri.clone();
            let result: GetSkillResult = client.request(&GET, params, &options).await?;
            if result.skill.uri == uri {
                Ok(result.skill)
            } else {
                Err(CallError::InvalidResponse {
                    method: GET.name,
                    reason: "the result is another skill".to_owned(),
                })
            }
        })
    }

    /// Reads the instructions of a skill, and verifies them against the list.
    ///
    /// Only its `SKILL.md` is read; if verification fails, no other file can be read.
    pub async fn read_skill(&self, entry: &SkillEntry) -> Result<Skill, SkillError> {
        Skill::read(self.clone(), entry.clone()).await
    }

    /// Lists the direct entries of a directory, page by page.
    pub fn directory(&self, uri: impl Into<String>) -> Pages<Resource> {
        let uri = uri.into();
        self.pages(&READ_DIRECTORY, move |client, cursor| {
            let page = client.read_directory(uri.clone(), cursor);
            async move { page.await.map(|page| (page.resources, page.next_cursor)) }
        })
    }

    /// Lists one page of the direct entries of a directory.
    pub fn read_directory(
        &self,
        uri: impl Into<String>,
        cursor: Option<String>,
    ) -> Call<ReadDirectoryResult> {
        let mut params = ReadDirectoryParams::new(uri);
        params.cursor = cursor;
        Call::new(self, async move |client: Client, options: CallOptions| {
            client.require_directories()?;
            client.request(&READ_DIRECTORY, params, &options).await
        })
    }

    fn require_skills(&self, method: &'static Method) -> Result<(), CallError> {
        if self.server().capabilities.has_extension(EXTENSION) {
            Ok(())
        } else {
            Err(CallError::CapabilityNotAdvertised {
                method: method.name,
                capability: EXTENSION,
            })
        }
    }

    fn require_directories(&self) -> Result<(), CallError> {
        self.require_skills(&READ_DIRECTORY)?;
        let server = self.server();
        let extensions = server.capabilities.extensions.as_ref();
        let settings = extensions.and_then(|extensions| extensions.get(EXTENSION));
        match settings.and_then(|settings| settings.get("directoryRead")) {
            Some(Value::Bool(true)) => Ok(()),
            _ => Err(CallError::CapabilityNotAdvertised {
                method: READ_DIRECTORY.name,
                capability: "directoryRead",
            }),
        }
    }
}

/// A difference between a skill and its listed entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillMismatch {
    /// The skill does not list this file.
    #[error("`{uri}` is not a file of the skill")]
    NotListed {
        /// The URI of the file.
        uri: String,
    },
    /// The size of the file differs from the listed size.
    #[error("`{uri}` has {found} bytes, but {listed} were listed")]
    Size {
        /// The URI of the file.
        uri: String,
        /// The listed size in bytes.
        listed: u64,
        /// The actual size in bytes.
        found: u64,
    },
    /// The hash of the file differs from the listed hash.
    #[error("the hash of `{uri}` differs from the list")]
    Digest {
        /// The URI of the file.
        uri: String,
    },
    /// The frontmatter of `SKILL.md` differs from the list.
    #[error("the frontmatter of `SKILL.md` differs from the list in `{member}`")]
    Frontmatter {
        /// The member that differs.
        member: String,
    },
    /// The frontmatter of `SKILL.md` is invalid.
    #[error("the frontmatter of `SKILL.md` is invalid: {0}")]
    Head(#[source] FrontmatterError),
    /// `SKILL.md` is not text.
    #[error("`SKILL.md` is not UTF-8")]
    NotText,
    /// The result does not contain the file.
    #[error("the result does not contain `{uri}`")]
    NotTheFile {
        /// The URI of the file.
        uri: String,
    },
}

/// Returns the listed entry of a file; `None` if the server generates the files on demand.
pub(super) fn listed<'a>(
    skill: &'a SkillEntry,
    uri: &str,
) -> Result<Option<&'a SkillResource>, SkillMismatch> {
    match &skill.resources {
        SkillResources::Files(files) => match files.iter().find(|file| file.uri == uri) {
            Some(file) => Ok(Some(file)),
            None => Err(SkillMismatch::NotListed {
                uri: uri.to_owned(),
            }),
        },
        _ => Ok(None),
    }
}

/// Verifies the size and the hash of a file.
pub(super) fn check_file(file: &SkillResource, bytes: &[u8]) -> Result<(), SkillMismatch> {
    let uri = || file.uri.clone();
    let found = bytes.len() as u64;
    if found != file.size {
        return Err(SkillMismatch::Size {
            uri: uri(),
            listed: file.size,
            found,
        });
    }
    if digest(bytes) != file.digest {
        return Err(SkillMismatch::Digest { uri: uri() });
    }
    Ok(())
}

/// Verifies the frontmatter of a `SKILL.md` against the list.
pub(super) fn check_head(skill: &SkillEntry, bytes: &[u8]) -> Result<Frontmatter, SkillMismatch> {
    let text = std::str::from_utf8(bytes).map_err(|_| SkillMismatch::NotText)?;
    let head = Frontmatter::parse(text).map_err(SkillMismatch::Head)?;
    match difference(&skill.frontmatter, &head.all) {
        Some(member) => Err(SkillMismatch::Frontmatter {
            member: member.to_owned(),
        }),
        None => Ok(head),
    }
}

/// Returns the first member that differs.
fn difference<'a>(listed: &'a JsonObject, read: &'a JsonObject) -> Option<&'a str> {
    let all = listed.keys().chain(read.keys());
    let mut members = all.map(String::as_str);
    members.find(|member| match (listed.get(*member), read.get(*member)) {
        (Some(listed), Some(read)) => !is_same(listed, read, *member == "metadata"),
        _ => true,
    })
}

/// Compares two members. YAML dialects disagree about the scalars in `metadata`, so only its keys are compared.
fn is_same(listed: &Value, read: &Value, only_names: bool) -> bool {
    match (listed, read) {
        (Value::Object(listed), Value::Object(read)) if only_names => {
            listed.len() == read.len() && listed.keys().all(|name| read.contains_key(name))
        }
        _ => listed == read,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEA: &str = "---\nname: tea\ndescription: Brews tea\nmetadata:\n  since: 2026-07-28\n---\nBoil water.\n";

    fn skill(frontmatter: Value) -> SkillEntry {
        let file = SkillResource::new(
            "skill://tea/SKILL.md",
            digest(TEA.as_bytes()),
            TEA.len() as u64,
        );
        let Value::Object(frontmatter) = frontmatter else {
            panic!("an object");
        };
        SkillEntry::new("skill://tea/SKILL.md", frontmatter, vec![file])
    }

    #[test]
    fn a_file_that_differs_from_its_listing_is_an_error() {
        let skill = skill(json!({}));
        let file = listed(&skill, "skill://tea/SKILL.md").unwrap().unwrap();
        let uri = || file.uri.clone();

        assert_eq!(check_file(file, TEA.as_bytes()), Ok(()));
        assert_eq!(
            check_file(file, TEA.replace("Boil", "Burn").as_bytes()),
            Err(SkillMismatch::Digest { uri: uri() })
        );
        assert_eq!(
            check_file(file, &TEA.as_bytes()[1..]),
            Err(SkillMismatch::Size {
                uri: uri(),
                listed: TEA.len() as u64,
                found: TEA.len() as u64 - 1
            })
        );
        assert!(matches!(
            listed(&skill, "skill://tea/other.md"),
            Err(SkillMismatch::NotListed { .. })
        ));
    }

    #[test]
    fn front_matter_that_differs_from_the_listing_is_an_error() {
        let check = |frontmatter: Value| check_head(&skill(frontmatter), TEA.as_bytes());
        let differs = |frontmatter: Value| match check(frontmatter) {
            Err(SkillMismatch::Frontmatter { member }) => member,
            other => panic!("{other:?}"),
        };
        let tea = json!({ "name": "tea", "description": "Brews tea", "metadata": { "since": "28 July" } });
        let with = |member: &str, value: Value| {
            let mut tea = tea.clone();
            tea[member] = value;
            tea
        };

        assert_eq!(check(tea.clone()).unwrap().name, "tea");
        assert_eq!(differs(with("name", json!("coffee"))), "name");
        assert_eq!(
            differs(with("description", json!("Brews coffee"))),
            "description"
        );
        assert_eq!(differs(with("license", json!("MIT"))), "license");
        assert_eq!(differs(with("metadata", json!({ "until": 1 }))), "metadata");
        assert_eq!(
            differs(json!({ "name": "tea", "description": "Brews tea" })),
            "metadata"
        );
        assert!(matches!(
            check_head(&skill(tea.clone()), b"# Tea"),
            Err(SkillMismatch::Head(FrontmatterError::Missing))
        ));
        assert_eq!(
            check_head(&skill(tea.clone()), b"\xff"),
            Err(SkillMismatch::NotText)
        );
    }
}
