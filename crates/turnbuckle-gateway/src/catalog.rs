//! What clients see of all upstream servers: names, lists, subscriptions and capabilities.

pub(crate) mod capabilities;
pub(crate) mod changes;
pub(crate) mod lists;
pub(crate) mod login_tool;
pub(crate) mod merged_list;
pub(crate) mod names;
pub(crate) mod resources;
pub(crate) mod result_uris;
pub(crate) mod search;
pub(crate) mod search_index;
pub(crate) mod server_states;
mod skills;
pub(crate) mod subscriptions;
pub(crate) mod uris;
pub(crate) mod views;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use arc_swap::ArcSwapOption;

use self::{
    changes::ChangeBursts,
    lists::HotList,
    merged_list::MergedList,
    names::{DEFAULT_MAX_NAME_LENGTH, LEAST_MAX_NAME_LENGTH, NameTable},
    uris::UriTable,
};
use crate::{convert::ListKind, lock};

/// The default maximum number of tools or prompts on a page.
const DEFAULT_PAGE_SIZE: usize = 5_000;
/// Maximum number of merged lists that are kept for each kind.
const MAX_MERGED_LISTS: usize = 16;

/// How clients see the servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatalogSettings {
    /// The maximum length of a name, in bytes.
    pub(crate) max_name_length: usize,
    /// The maximum number of tools or prompts on a page.
    pub(crate) page_size: usize,
    /// Whether clients get tools to search for tools instead of the list.
    pub(crate) search_mode: bool,
}

impl Default for CatalogSettings {
    fn default() -> Self {
        Self {
            max_name_length: DEFAULT_MAX_NAME_LENGTH,
            page_size: DEFAULT_PAGE_SIZE,
            search_mode: false,
        }
    }
}

impl CatalogSettings {
    pub(crate) fn set_max_name_length(&mut self, bytes: usize) {
        self.max_name_length = bytes.max(LEAST_MAX_NAME_LENGTH);
    }
}

/// The names and lists of all servers.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) settings: CatalogSettings,
    /// The names of tools and of prompts.
    names: [Mutex<NameTable>; 2],
    pub(crate) resources: Mutex<UriTable>,
    pub(crate) templates: Mutex<UriTable>,
    /// Whether a URI was ever shown in another form, so that results have to be searched for it.
    has_renamed_uris: AtomicBool,
    /// The version of the lists of which the URIs are known.
    loaded_uris: AtomicU64,
    merged: [Mutex<Vec<Arc<MergedList>>>; 2],
    /// The list that all callers see, if no server has lists of its own for a caller.
    hot: [ArcSwapOption<HotList>; 2],
    /// Incremented when a list may have changed.
    generations: [AtomicU64; 4],
    /// Incremented when the state of a server has changed.
    states: AtomicU64,
    pub(crate) bursts: ChangeBursts,
}

impl Catalog {
    pub(crate) fn new(settings: CatalogSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// The names of tools or prompts.
    pub(crate) fn names(&self, kind: ListKind) -> &Mutex<NameTable> {
        &self.names[kind as usize]
    }

    pub(crate) fn uris(&self, kind: ListKind) -> &Mutex<UriTable> {
        match kind {
            ListKind::Templates => &self.templates,
            _ => &self.resources,
        }
    }

    pub(crate) fn hot(&self, kind: ListKind) -> &ArcSwapOption<HotList> {
        &self.hot[kind as usize]
    }

    pub(crate) fn generation(&self, kind: ListKind) -> u64 {
        self.generations[kind as usize].load(Ordering::Acquire)
    }

    /// Notes that a list may have changed.
    pub(crate) fn invalidate(&self, kind: ListKind) {
        self.generations[kind as usize].fetch_add(1, Ordering::AcqRel);
    }

    /// Returns whether a URI was ever shown in another form.
    pub(crate) fn has_renamed_uris(&self) -> bool {
        self.has_renamed_uris.load(Ordering::Relaxed)
    }

    pub(crate) fn note_renamed_uri(&self) {
        self.has_renamed_uris.store(true, Ordering::Relaxed);
    }

    /// The version of the lists of resources and templates; never 0.
    pub(crate) fn uris_version(&self) -> u64 {
        self.generation(ListKind::Resources) + self.generation(ListKind::Templates) + 1
    }

    pub(crate) fn has_loaded_uris(&self, version: u64) -> bool {
        self.loaded_uris.load(Ordering::Acquire) == version
    }

    pub(crate) fn set_loaded_uris(&self, version: u64) {
        self.loaded_uris.store(version, Ordering::Release);
    }

    pub(crate) fn states_version(&self) -> u64 {
        self.states.load(Ordering::Acquire)
    }

    /// Notes that the state of a server has changed.
    pub(crate) fn states_changed(&self) {
        self.states.fetch_add(1, Ordering::AcqRel);
        ListKind::ALL.iter().for_each(|kind| self.invalidate(*kind));
    }

    /// Forgets all names and lists, because there are other servers.
    pub(crate) fn clear(&self) {
        for names in &self.names {
            *lock(names) = NameTable::default();
        }
        for merged in &self.merged {
            lock(merged).clear();
        }
        *lock(&self.resources) = UriTable::default();
        *lock(&self.templates) = UriTable::default();
        self.states_changed();
    }

    /// Returns the kept merged list that `matches`, or adds a new one.
    pub(crate) fn merged(
        &self,
        kind: ListKind,
        matches: impl Fn(&MergedList) -> bool,
        merge: impl FnOnce() -> MergedList,
    ) -> Arc<MergedList> {
        let mut kept = lock(&self.merged[kind as usize]);
        if let Some(at) = kept.iter().position(|list| matches(list)) {
            kept[at..].rotate_left(1);
        } else {
            if kept.len() >= MAX_MERGED_LISTS {
                kept.remove(0);
            }
            kept.push(Arc::new(merge()));
        }
        Arc::clone(&kept[kept.len() - 1])
    }
}
