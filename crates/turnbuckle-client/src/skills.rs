//! Skills: folders of instructions and files that a model reads when it needs them.
//!
//! Nothing is read ahead of need: a list brings names and descriptions, [`Client::read_skill`] the instructions of one
//! skill, [`Skill::file`] one file. What is read is checked against what was listed, and a skill that fails the check
//! is not read any further.

mod methods;
mod verify;

pub use verify::SkillMismatch;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use turnbuckle_protocol::types::{
    ReadResourceResult, ResourceContents,
    skills::{SkillEntry, SkillResource, SkillResources},
};

use crate::client::Client;
use crate::error::CallError;

/// A skill whose instructions were read, and found to be what the server listed.
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
        let head = verify::check_head(&entry, &bytes)?;
        let text = String::from_utf8(bytes).map_err(|_| SkillMismatch::NotText)?;
        Ok(Self {
            client,
            entry,
            name: head.name,
            text,
        })
    }

    /// Returns what the skill is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text of its `SKILL.md`, head and all.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the entry that it was read by.
    pub fn entry(&self) -> &SkillEntry {
        &self.entry
    }

    /// Returns the files of the skill, `SKILL.md` among them; none are known of a skill that makes them when asked.
    pub fn files(&self) -> &[SkillResource] {
        match &self.entry.resources {
            SkillResources::Files(files) => files,
            _ => &[],
        }
    }

    /// Reads a file of the skill by its address.
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

/// Why a skill cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The server could not be asked, or refused.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What the server sent is not what it listed.
    #[error("the skill is not what the server listed")]
    Mismatch(#[from] SkillMismatch),
}

/// Reads a file of a skill, and checks it.
async fn read_checked(
    client: &Client,
    entry: &SkillEntry,
    uri: &str,
) -> Result<Vec<u8>, SkillError> {
    // What is not listed is not even asked for.
    let file = verify::listed(entry, uri)?;
    let read = client.read_resource(uri).await?;
    let bytes = contents(read, uri)?;
    if let Some(file) = file {
        verify::check_file(file, &bytes)?;
    }
    Ok(bytes)
}

/// The bytes of the one file that was asked for.
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
