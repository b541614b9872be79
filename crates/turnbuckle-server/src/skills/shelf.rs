//! All skills as they were at one moment, ready to be served.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;
use turnbuckle_protocol::{
    skills::{Frontmatter, digest},
    types::{
        Resource as Definition,
        skills::{DIRECTORY, MANIFEST, SkillEntry, SkillResource},
    },
};
use turnbuckle_store::Change;

use super::{address, media};
use crate::{
    CacheHint, RequestError, Resource,
    catalog::{Listed, Table},
    lifecycle::Rules,
    scopes::Needs,
    visibility::Visibility,
};

/// A skill with all its files.
pub(super) struct Volume {
    /// The address of its folder.
    pub(super) folder: String,
    pub(super) head: Arc<Frontmatter>,
    pub(super) files: Vec<File>,
}

/// A file of a skill.
#[derive(Clone)]
pub(super) struct File {
    pub(super) uri: String,
    pub(super) media_type: Option<&'static str>,
    /// The hash of its bytes, as it goes on the wire.
    pub(super) digest: Arc<str>,
    pub(super) size: u64,
    pub(super) body: Body,
}

/// Where the bytes of a file are.
#[derive(Clone)]
pub(super) enum Body {
    Held(Bytes),
    /// At this path, which is to lie below this folder.
    OnDisk {
        path: PathBuf,
        root: Arc<PathBuf>,
    },
}

impl File {
    pub(super) fn new(uri: String, bytes: &[u8], body: Body) -> Self {
        Self {
            media_type: media::of(&uri),
            digest: digest(bytes).into(),
            size: bytes.len() as u64,
            uri,
            body,
        }
    }
}

/// All skills at one moment.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) skills: Table<Entry>,
    /// The `SKILL.md` of each, as `resources/list` shows it.
    pub(super) listed: Arc<Vec<Arc<Resource>>>,
    pub(super) files: HashMap<String, File>,
    /// What is directly in each folder.
    pub(super) folders: HashMap<String, Table<Resource>>,
}

impl Shelf {
    /// Puts skills in order; of two at the same address the first is taken.
    pub(super) fn new<'a>(volumes: impl IntoIterator<Item = &'a Arc<Volume>>) -> Self {
        let mut shelf = Self::default();
        let mut folders = BTreeMap::<String, BTreeMap<String, Definition>>::new();
        let mut listed = Vec::new();
        for volume in volumes {
            if shelf.skills.has(&volume.manifest()) {
                continue;
            }
            shelf.skills.put(Entry(volume.entry()));
            for file in &volume.files {
                let definition = volume.definition(file);
                if file.uri == volume.manifest() {
                    listed.push(Arc::new(only_listed(definition.clone())));
                }
                shelve(&mut folders, definition);
                shelf.files.insert(file.uri.clone(), file.clone());
            }
        }
        shelf.listed = Arc::new(listed);
        shelf.folders = folders
            .into_iter()
            .map(|(folder, inside)| {
                let mut table = Table::default();
                for definition in inside.into_values() {
                    table.put(only_listed(definition));
                }
                (folder, table)
            })
            .collect();
        shelf
    }

    pub(super) fn has(&self, uri: &str) -> bool {
        self.files.contains_key(uri) || self.folders.contains_key(uri)
    }

    /// What clients are to be told when `newer` takes the place of this.
    pub(super) fn changes(&self, newer: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        let contents = |shelf: &Self| -> Vec<_> {
            let entries = shelf.skills.iter().map(|entry| entry.0.clone());
            // What is in the files is for those to hear who watch the files.
            entries.map(without_digests).collect()
        };
        if contents(self) != contents(newer) {
            changes.push(Change::ResourcesChanged);
        }
        let uris: HashSet<_> = self.files.keys().chain(newer.files.keys()).collect();
        let digest = |shelf: &Self, uri: &str| shelf.files.get(uri).map(|file| file.digest.clone());
        let mut updated: Vec<_> = uris
            .into_iter()
            .filter(|uri| digest(self, uri) != digest(newer, uri))
            .collect();
        updated.sort_unstable();
        changes.extend(updated.into_iter().map(|uri| Change::ResourceUpdated {
            uri: uri.as_str().into(),
        }));
        changes
    }
}

impl Volume {
    pub(super) fn manifest(&self) -> String {
        address::below(&self.folder, MANIFEST)
    }

    fn entry(&self) -> SkillEntry {
        let files = self.files.iter();
        let files = files.map(|file| SkillResource::new(&*file.uri, &*file.digest, file.size));
        let files: Vec<_> = files.collect();
        SkillEntry::new(self.manifest(), self.head.all.clone(), files)
    }

    fn definition(&self, file: &File) -> Definition {
        let name = file.uri.rsplit('/').next().unwrap_or_default();
        let mut definition = if file.uri == self.manifest() {
            Definition::new(&*file.uri, &*self.head.name).description(&*self.head.description)
        } else {
            Definition::new(&*file.uri, name)
        };
        definition.mime_type = file.media_type.map(str::to_owned);
        definition.size = Some(file.size);
        definition
    }
}

/// Puts something into its folder, and that into the folder above it.
fn shelve(folders: &mut BTreeMap<String, BTreeMap<String, Definition>>, definition: Definition) {
    let uri = definition.uri.clone();
    let Some(parent) = address::parent(&uri) else {
        return;
    };
    let is_new = !folders.contains_key(parent);
    let inside = folders.entry(parent.to_owned()).or_default();
    inside.insert(uri.clone(), definition);
    if is_new {
        let name = parent.rsplit('/').next().unwrap_or_default();
        let folder = Definition::new(parent, name).mime_type(DIRECTORY);
        shelve(folders, folder);
    }
}

/// A resource that is read through its source.
fn only_listed(definition: Definition) -> Resource {
    Resource {
        definition,
        read: Arc::new(|_, _| Box::pin(std::future::ready(Err(RequestError::not_found())))),
        cache: CacheHint::NONE,
        visibility: Visibility::OPEN,
        needs: Needs::NOTHING,
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

/// A skill as `skills/list` shows it.
pub(super) struct Entry(pub(super) SkillEntry);

impl Listed for Entry {
    const MEMBER: &'static str = "skills";

    fn key(&self) -> &str {
        &self.0.uri
    }

    fn write(&self, _: &Rules, out: &mut Vec<u8>) {
        serde_json::to_writer(out, &self.0).expect("an entry has string keys");
    }
}
