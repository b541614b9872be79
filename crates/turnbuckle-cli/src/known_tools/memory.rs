//! What the tools of a server looked like, in a file for each server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use turnbuckle_client::{ToolDigest, ToolFingerprint};
use turnbuckle_protocol::types::Tool;

use crate::state;

/// So many tools of a server are remembered. Those that came first stay, so that none can be crowded out.
const TOOLS: usize = 2_000;
/// So many servers are remembered; the one that was not used for the longest time is forgotten.
const SERVERS: usize = 1_000;
/// A longer name is remembered by its digest.
const NAME: usize = 128;
/// A server that is used is noted down as often as this.
const USED: Duration = Duration::from_secs(24 * 60 * 60);

/// The tools of one server.
///
/// Two commands at a time may write: each reads first, and replaces the file as a whole. Of what both learned, one part
/// may get lost, which is learned again.
#[derive(Debug)]
pub(crate) struct Memory {
    file: Option<PathBuf>,
}

/// The tools that are remembered, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tools {
    tools: BTreeMap<String, Known>,
}

/// What is remembered of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    /// As it was when it was first seen, or when the user agreed to what it had become.
    agreed: ToolFingerprint,
    /// What the user was told it has become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<ToolDigest>,
}

/// A tool that is not what it was.
#[derive(Debug, PartialEq)]
pub(crate) struct Changed {
    /// Its name.
    pub(crate) tool: String,
    /// The members that came, went or changed.
    pub(crate) members: Vec<&'static str>,
    /// Whether the user was told.
    pub(crate) told: bool,
}

impl Memory {
    /// Returns what is remembered of a server, in our folder.
    pub(crate) fn new(folder: Option<PathBuf>, server: &str) -> Self {
        Self {
            file: folder.map(|folder| folder.join("tools").join(format!("{server}.json"))),
        }
    }

    /// Returns what is remembered; what cannot be read is forgotten.
    pub(crate) fn read(&self) -> Tools {
        let text = self.file.as_ref().and_then(|file| fs::read(file).ok());
        let tools = text.and_then(|text| serde_json::from_slice(&text).ok());
        tools.unwrap_or_default()
    }

    /// Changes what is remembered. Without a folder for it, nothing is.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut Tools) -> T) -> (T, io::Result<()>) {
        let before = self.read();
        let mut now = before.clone();
        let outcome = change(&mut now);
        let Some(file) = &self.file else {
            return (outcome, Ok(()));
        };
        let written = match now == before {
            true => keep(file),
            false => write(file, &now),
        };
        (outcome, written)
    }
}

impl Tools {
    /// Says whether a tool is remembered.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.tools.contains_key(&key(name))
    }

    /// Remembers a tool that is new, and says how one differs that is not.
    pub(crate) fn see(&mut self, tool: &Tool) -> Option<Changed> {
        let now = ToolFingerprint::of(tool);
        let Some(known) = self.tools.get_mut(&key(&tool.name)) else {
            self.agree(tool);
            return None;
        };
        let digest = now.digest();
        if known.agreed.digest() == digest {
            known.told = None;
            return None;
        }
        Some(Changed {
            tool: tool.name.clone(),
            members: now.changes_since(&known.agreed),
            told: known.told.replace(digest) == Some(digest),
        })
    }

    /// Remembers a tool as it is now, if it is remembered already or there is room.
    pub(crate) fn agree(&mut self, tool: &Tool) {
        let known = Known {
            agreed: ToolFingerprint::of(tool),
            told: None,
        };
        let full = self.tools.len() >= TOOLS;
        if !full || self.knows(&tool.name) {
            self.tools.insert(key(&tool.name), known);
        }
    }
}

fn key(name: &str) -> String {
    match name.len() > NAME {
        true => format!("sha256:{}", state::digest([name])),
        false => name.to_owned(),
    }
}

fn write(file: &Path, tools: &Tools) -> io::Result<()> {
    let new = !file.exists();
    state::write(file, &serde_json::to_vec_pretty(tools)?)?;
    match file.parent() {
        Some(folder) if new => forget_oldest(folder),
        _ => Ok(()),
    }
}

/// Notes down that a file is of use, so that it is not the oldest.
fn keep(file: &Path) -> io::Result<()> {
    let Ok(written) = fs::metadata(file).and_then(|about| about.modified()) else {
        return Ok(());
    };
    match written.elapsed() {
        Ok(age) if age > USED => {
            let file = File::options().append(true).open(file)?;
            file.set_modified(SystemTime::now())
        }
        _ => Ok(()),
    }
}

fn forget_oldest(folder: &Path) -> io::Result<()> {
    let files = fs::read_dir(folder)?.flatten();
    let dated = files.filter_map(|file| {
        let written = file.metadata().ok()?.modified().ok()?;
        Some((written, file.path()))
    });
    let mut dated: Vec<_> = dated.collect();
    dated.sort();
    let many = dated.len().saturating_sub(SERVERS);
    dated[..many]
        .iter()
        .try_for_each(|(_, file)| fs::remove_file(file))
}
