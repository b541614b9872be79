//! The tools or prompts of several servers as one list, written once for each revision of clients.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use turnbuckle_protocol::{Revision, RpcError, jsonrpc::RawObject};

use crate::{
    catalog::{
        names::{NameTable, Naming},
        search_index::SearchIndex,
    },
    convert::ListKind,
    lifecycle::{RevisionPair, task_design},
    raw_json::{edit, quote},
    tasks::with_task_support,
    upstream::{UpstreamServer, list_cache::ServerList},
};

/// Maximum size of the definitions on a page, unless there is only one.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;

/// The list of a server.
pub(crate) type ListPart = (Arc<UpstreamServer>, Arc<ServerList>);

/// The lists of several servers as one.
pub(crate) struct MergedList {
    kind: ListKind,
    parts: Vec<ListPart>,
    /// The version of the server states, which are part of the written list.
    states_version: u64,
    items: Vec<MergedItem>,
    /// The positions at which pages start.
    page_starts: Vec<usize>,
    /// The written pages of each revision, without the closing brace.
    written: [OnceLock<Vec<Bytes>>; Revision::ALL.len()],
    index: OnceLock<SearchIndex>,
}

/// An item, by its position in a part.
struct MergedItem {
    part: usize,
    item: usize,
    /// The name that clients see, if it differs.
    name: Option<Box<str>>,
}

impl MergedList {
    /// Merges the lists of servers, in the order of the configuration.
    pub(crate) fn new(
        kind: ListKind,
        parts: Vec<ListPart>,
        states_version: u64,
        naming: &Naming<'_>,
        names: &mut NameTable,
        page_size: usize,
    ) -> Self {
        let mut items = Vec::new();
        let (mut page_starts, mut page_items, mut page_bytes) = (vec![0], 0, 0);
        for (part, (server, list)) in parts.iter().enumerate() {
            // A call of a locked tool says why it is refused, and no other server gets the name.
            for locked in server.tool_lock.differing_names(kind) {
                names.add(naming, &server.settings.name, &locked);
            }
            let mut seen = HashSet::new();
            for (at, item) in list.items.iter().enumerate() {
                if !server.permits(kind, item) {
                    // The audit log tells a hidden name from an unknown one. Without prefixes another server may have it.
                    if naming.has_prefix {
                        names.add(naming, &server.settings.name, &item.name);
                    }
                    continue;
                }
                if !seen.insert(&*item.name) {
                    continue;
                }
                let Some(name) = names.add(naming, &server.settings.name, &item.name) else {
                    continue;
                };
                let is_full =
                    page_items >= page_size || page_bytes + item.json.len() > MAX_PAGE_BYTES;
                if is_full && page_items > 0 {
                    page_starts.push(items.len());
                    (page_items, page_bytes) = (0, 0);
                }
                page_items += 1;
                page_bytes += item.json.len();
                items.push(MergedItem {
                    part,
                    item: at,
                    name: (*name != *item.name).then(|| name.into_owned().into_boxed_str()),
                });
            }
        }
        Self {
            kind,
            parts,
            states_version,
            items,
            page_starts,
            written: Default::default(),
            index: OnceLock::new(),
        }
    }

    /// Returns whether the list was made of these parts.
    pub(crate) fn is_made_of(&self, parts: &[ListPart], states_version: u64) -> bool {
        let is_same = |(known, part): (&ListPart, &ListPart)| {
            Arc::ptr_eq(&known.0, &part.0) && known.1.id == part.1.id
        };
        self.states_version == states_version
            && self.parts.len() == parts.len()
            && self.parts.iter().zip(parts).all(is_same)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn server(&self, at: usize) -> &Arc<UpstreamServer> {
        &self.parts[self.items[at].part].0
    }

    /// Returns the name that clients see.
    pub(crate) fn name(&self, at: usize) -> &str {
        let item = &self.items[at];
        item.name
            .as_deref()
            .unwrap_or(&self.parts[item.part].1.items[item.item].name)
    }

    /// Returns the position of the item with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        (0..self.len()).find(|at| self.name(*at) == name)
    }

    /// Returns the definition of an item, as received.
    pub(crate) fn definition(&self, at: usize) -> &str {
        let item = &self.items[at];
        &self.parts[item.part].1.items[item.item].json
    }

    /// Returns the words of all items.
    pub(crate) fn index(&self) -> &SearchIndex {
        self.index.get_or_init(|| SearchIndex::new(self))
    }

    /// Returns the page that starts at a position, and where the next one starts. `finish` adds what follows the items.
    pub(crate) fn page(
        &self,
        start: usize,
        revision: Revision,
        map_uri: &MapUri<'_>,
        finish: impl Fn(String) -> String,
    ) -> (Bytes, Option<usize>) {
        let next = self.page_starts.iter().find(|next| **next > start).copied();
        let write = |start, end| Bytes::from(finish(self.write(start, end, revision, map_uri)));
        let Ok(page) = self.page_starts.binary_search(&start) else {
            // The list has changed since the last page.
            return (write(start, next.unwrap_or(self.len())), next);
        };
        let pages = self.written[revision.index()].get_or_init(|| {
            let ends = self.page_starts.iter().skip(1).copied();
            let ends = ends.chain([self.len()]);
            let pages = self.page_starts.iter().zip(ends);
            pages.map(|(start, end)| write(*start, end)).collect()
        });
        (pages[page].clone(), next)
    }

    fn write(&self, start: usize, end: usize, revision: Revision, map_uri: &MapUri<'_>) -> String {
        let mut out = format!("{{\"{}\":[", self.kind.items_member());
        let mut separator = "";
        for at in start..end {
            match self.write_item(at, revision, map_uri) {
                Ok(item) => {
                    out.push_str(separator);
                    out.push_str(&item);
                    separator = ",";
                }
                Err(error) => tracing::warn!(
                    server = self.server(at).name(),
                    item = self.name(at),
                    error = %error.message,
                    "an invalid item is left out"
                ),
            }
        }
        out.push(']');
        out
    }

    /// Returns the definition of an item for clients of a revision.
    pub(crate) fn write_item(
        &self,
        at: usize,
        revision: Revision,
        map_uri: &MapUri<'_>,
    ) -> Result<String, RpcError> {
        let pair = RevisionPair {
            downstream: revision,
            upstream: self.parts[self.items[at].part].1.revision,
        };
        let json = self.kind.item(self.definition(at), pair)?;
        let mut json = with_task_support(self.kind, json, task_design(revision), self.server(at))?;
        if let Some(name) = &self.items[at].name {
            json = edit(&json, &[], &[(self.kind.name_member(), quote(name))])?;
        }
        if self.kind == ListKind::Tools && json.contains("ui://") {
            let server = self.server(at);
            json = with_ui_uri(&json, |uri| map_uri(server, uri))?;
        }
        Ok(json)
    }
}

/// Returns the URI under which clients know a resource of a server.
pub(crate) type MapUri<'a> = dyn Fn(&UpstreamServer, &str) -> String + 'a;

/// Replaces the URI of the user interface of a tool.
fn with_ui_uri(tool: &str, map: impl Fn(&str) -> String) -> Result<String, RpcError> {
    let object = RawObject::parse(tool)?;
    let Some(meta) = object.get("_meta") else {
        return Ok(tool.to_owned());
    };
    let meta_object = RawObject::parse(meta)?;
    let mut set = Vec::new();
    if let Some(ui) = meta_object.get("ui")
        && let Some(uri) = RawObject::parse(ui)?.string("resourceUri")?
    {
        set.push(("ui", edit(ui, &[], &[("resourceUri", quote(&map(&uri)))])?));
    }
    // The name in early versions of the extension.
    if let Some(uri) = meta_object.string("ui/resourceUri")? {
        set.push(("ui/resourceUri", quote(&map(&uri))));
    }
    let meta = edit(meta, &[], &set)?;
    edit(tool, &[], &[("_meta", meta)])
}
