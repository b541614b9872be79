//! An immutable snapshot of all skills.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use turnbuckle_protocol::{
    skills::{Frontmatter, digest},
    types::{
        Resource as Definition,
        skills::{DIRECTORY, MANIFEST, SkillEntry, SkillResource},
    },
};
use turnbuckle_store::{ListDigest, ServerChange};

use super::skill::{join_uri, parent_uri};
use crate::{
    CacheHint, RequestError, Resource,
    catalog::{
        CatalogEntry, EntryTable, scopes::RequiredScopes, short_digest, visibility::Visibility,
    },
    lifecycle::RevisionRules,
};

/// A skill with its files.
pub(super) struct LoadedSkill {
    /// The URI of its folder.
    pub(super) folder: String,
    pub(super) frontmatter: Arc<Frontmatter>,
    pub(super) files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Clone)]
pub(super) struct SkillFile {
    pub(super) uri: String,
    pub(super) media_type: Option<&'static str>,
    /// The digest of its bytes, as sent to clients.
    pub(super) digest: Arc<str>,
    pub(super) size: u64,
    pub(super) body: FileBody,
}

/// The location of a file's bytes.
#[derive(Clone)]
pub(super) enum FileBody {
    InMemory(Bytes),
    /// A path, which must be below `root`.
    OnDisk {
        path: PathBuf,
        root: Arc<PathBuf>,
    },
}

impl SkillFile {
    pub(super) fn new(uri: String, bytes: &[u8], body: FileBody) -> Self {
        Self {
            media_type: media_type(&uri),
            digest: digest(bytes).into(),
            size: bytes.len() as u64,
            uri,
            body,
        }
    }
}

/// All skills at one point in time.
#[derive(Default)]
pub(super) struct SkillSnapshot {
    pub(super) skills: EntryTable<SkillListEntry>,
    /// The `SKILL.md` of each skill, for `resources/list`.
    pub(super) listed: Arc<Vec<Arc<Resource>>>,
    pub(super) files: HashMap<String, SkillFile>,
    /// The direct entries of each folder.
    pub(super) folders: HashMap<String, EntryTable<Resource>>,
}

impl SkillSnapshot {
    /// Builds a snapshot. Of two skills with the same URI, the first is used.
    pub(super) fn new<'a>(sources: impl IntoIterator<Item = &'a Arc<LoadedSkill>>) -> Self {
        let mut snapshot = Self::default();
        let mut folders = BTreeMap::<String, BTreeMap<String, Definition>>::new();
        let mut listed = Vec::new();
        for skill in sources {
            if snapshot.skills.has(&skill.manifest()) {
                continue;
            }
            snapshot.skills.put(SkillListEntry(skill.entry()));
            for file in &skill.files {
                let definition = skill.definition(file);
                if file.uri == skill.manifest() {
                    listed.push(Arc::new(listed_resource(definition.clone())));
                }
                add_to_folder(&mut folders, definition);
                snapshot.files.insert(file.uri.clone(), file.clone());
            }
        }
        snapshot.listed = Arc::new(listed);
        snapshot.folders = folders
            .into_iter()
            .map(|(folder, entries)| {
                let mut table = EntryTable::default();
                for definition in entries.into_values() {
                    table.put(listed_resource(definition));
                }
                (folder, table)
            })
            .collect();
        snapshot
    }

    pub(super) fn has(&self, uri: &str) -> bool {
        self.files.contains_key(uri) || self.folders.contains_key(uri)
    }

    /// Returns the skills as far as the list of resources shows them.
    fn contents(&self) -> Vec<SkillEntry> {
        let entries = self.skills.iter().map(|entry| entry.0.clone());
        // Changes of file contents are announced only to subscribers of the file.
        entries.map(without_digests).collect()
    }

    /// Returns the digest of what a change of the list announces.
    pub(super) fn list_digest(&self) -> ListDigest {
        let contents = serde_json::to_vec(&self.contents()).unwrap_or_default();
        short_digest(Sha256::new().chain_update(contents))
    }

    /// Returns the changes to announce when `newer` replaces this snapshot.
    pub(super) fn changes(&self, newer: &Self) -> Vec<ServerChange> {
        let mut changes = Vec::new();
        if self.contents() != newer.contents() {
            changes.push(ServerChange::ResourcesChanged);
        }
        let uris: HashSet<_> = self.files.keys().chain(newer.files.keys()).collect();
        let digest =
            |snapshot: &Self, uri: &str| snapshot.files.get(uri).map(|file| file.digest.clone());
        let mut updated: Vec<_> = uris
            .into_iter()
            .filter(|uri| digest(self, uri) != digest(newer, uri))
            .collect();
        updated.sort_unstable();
        changes.extend(
            updated
                .into_iter()
                .map(|uri| ServerChange::ResourceUpdated {
                    uri: uri.as_str().into(),
                }),
        );
        changes
    }
}

impl LoadedSkill {
    pub(super) fn manifest(&self) -> String {
        join_uri(&self.folder, MANIFEST)
    }

    fn entry(&self) -> SkillEntry {
        let files = self.files.iter();
        let files = files.map(|file| SkillResource::new(&*file.uri, &*file.digest, file.size));
        let files: Vec<_> = files.collect();
        SkillEntry::new(self.manifest(), self.frontmatter.all.clone(), files)
    }

    fn definition(&self, file: &SkillFile) -> Definition {
        let name = file.uri.rsplit('/').next().unwrap_or_default();
        let mut definition = if file.uri == self.manifest() {
            Definition::new(&*file.uri, &*self.frontmatter.name)
                .description(&*self.frontmatter.description)
        } else {
            Definition::new(&*file.uri, name)
        };
        definition.mime_type = file.media_type.map(str::to_owned);
        definition.size = Some(file.size);
        definition
    }
}

/// Adds an entry to its folder, and the folder to its parent.
fn add_to_folder(
    folders: &mut BTreeMap<String, BTreeMap<String, Definition>>,
    definition: Definition,
) {
    let uri = definition.uri.clone();
    let Some(parent) = parent_uri(&uri) else {
        return;
    };
    let is_new = !folders.contains_key(parent);
    let entries = folders.entry(parent.to_owned()).or_default();
    entries.insert(uri.clone(), definition);
    if is_new {
        let name = parent.rsplit('/').next().unwrap_or_default();
        let folder = Definition::new(parent, name).mime_type(DIRECTORY);
        add_to_folder(folders, folder);
    }
}

/// A resource that is listed here and read by its provider.
fn listed_resource(definition: Definition) -> Resource {
    Resource {
        definition,
        read: Arc::new(|_, _| Box::pin(std::future::ready(Err(RequestError::not_found())))),
        cache: CacheHint::NONE,
        visibility: Visibility::OPEN,
        required_scopes: RequiredScopes::NONE,
        state: None,
    }
}

fn without_digests(mut entry: SkillEntry) -> SkillEntry {
    use turnbuckle_protocol::types::skills::SkillResources;
    if let SkillResources::Files(files) = &mut entry.resources {
        for file in files {
            file.digest.clear();
            file.size = 0;
        }
    }
    entry
}

/// A skill in `skills/list`.
pub(super) struct SkillListEntry(pub(super) SkillEntry);

impl CatalogEntry for SkillListEntry {
    const MEMBER: &'static str = "skills";

    fn key(&self) -> &str {
        &self.0.uri
    }

    fn write(&self, _: &RevisionRules, out: &mut Vec<u8>) {
        serde_json::to_writer(out, &self.0).expect("an entry has string keys");
    }
}

/// Returns the media type of a file name, if known.
pub(super) fn media_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "md" | "markdown" => "text/markdown",
        "txt" | "text" | "log" => "text/plain",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" | "cjs" => "text/javascript",
        "ts" | "tsx" => "text/x-typescript",
        "py" => "text/x-python",
        "sh" | "bash" => "text/x-shellscript",
        "rs" => "text/x-rust",
        "go" => "text/x-go",
        "rb" => "text/x-ruby",
        "sql" => "application/sql",
        "json" => "application/json",
        "jsonl" => "application/jsonl",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" | "xsd" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "wasm" => "application/wasm",
        "ttf" => "font/ttf",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        _ => return None,
    })
}

/// Returns whether a media type is binary, even if the bytes are valid text.
pub(super) fn is_binary(media_type: &str) -> bool {
    let (kind, name) = media_type.split_once('/').unwrap_or((media_type, ""));
    match kind {
        "image" => name != "svg+xml",
        "audio" | "video" | "font" => true,
        "application" => {
            matches!(name, "pdf" | "zip" | "gzip" | "wasm") || name.starts_with("vnd.")
        }
        _ => false,
    }
}
