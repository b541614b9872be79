//! Keeps the list of resources up to date, even if another process changes the databases.
//!
//! Before `resources/list` and similar requests, the caller's databases are scanned. A file with unchanged size and modification
//! time is skipped, so that the scan is cheap. New resources are added, missing ones are removed, and clients are notified.

mod scan;
mod skills;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::sync::Mutex;
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Context, Resource, Server,
    middleware::{Middleware, Next, Operation, OperationResponse},
};

use self::scan::{ListedResource, PartitionSnapshots, ResourceTarget};
use super::resources;
use crate::{Owner, OwnershipPolicy, app_state::AppState, storage::lock};

/// Maximum number of listed resources per owner, newest first. Templates give access to the others.
const MAX_LISTED: usize = 500;
/// Maximum number of owners with listed resources; the least recently used list is evicted first.
const MAX_OWNERS: usize = 64;

/// The listed resources, by owner.
pub(crate) struct ResourceSync {
    by_principal: bool,
    lists: std::sync::Mutex<OwnerLists>,
}

#[derive(Default)]
struct OwnerLists {
    by_owner: HashMap<Owner, (u64, Arc<Mutex<OwnerList>>)>,
    uses: u64,
}

/// The listed resources of one owner.
#[derive(Default)]
struct OwnerList {
    has_template: bool,
    snapshots: PartitionSnapshots,
    /// The listed URIs, with title and version.
    published: BTreeMap<String, (String, u64)>,
    skills: skills::PublishedSkills,
}

impl ResourceSync {
    pub(crate) fn new(owners: &OwnershipPolicy) -> Self {
        Self {
            by_principal: matches!(owners, OwnershipPolicy::PerPrincipal),
            lists: std::sync::Mutex::default(),
        }
    }

    /// Scans the databases of a caller and updates the list.
    pub(crate) async fn refresh(&self, state: &AppState, server: &Server, who: Option<&Principal>) {
        // A caller without an owner sees no resources.
        let Ok(owner) = state.ownership().owner_for(who) else {
            return;
        };
        let (list, evicted) = self.lock().list_for(&owner);
        if let Some((owner, list)) = evicted {
            self.clear(server, &owner, &*list.lock().await);
        }
        // One scan at a time per owner, so that notifications keep their order.
        let mut list = list.lock().await;
        let snapshots = std::mem::take(&mut list.snapshots);
        let its_owner = owner.clone();
        let scanned = state.read_memory(&owner, async move |state| {
            scan::scan(&state, &its_owner, snapshots).await
        });
        let snapshots = match scanned.await {
            Ok(snapshots) => snapshots,
            Err(error) => {
                tracing::warn!(%error, "resources could not be scanned");
                return;
            }
        };
        if self.by_principal && !list.has_template {
            let its_owner = owner.clone();
            let template = resources::collection_template(state, &owner);
            server.add_template(template.visible_to(move |who| is_owner(&its_owner, who)));
            list.has_template = true;
        }
        self.update(state, server, &owner, &mut list, &snapshots);
        list.snapshots = snapshots;
    }

    /// Removes the resources of an owner from the list. Templates still give access to them.
    fn clear(&self, server: &Server, owner: &Owner, list: &OwnerList) {
        server.change_resources(list.published.keys(), []);
        if self.by_principal {
            server.remove_template(&resources::collection_uri_template(owner));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OwnerLists> {
        lock(&self.lists)
    }

    fn update(
        &self,
        state: &AppState,
        server: &Server,
        owner: &Owner,
        list: &mut OwnerList,
        snapshots: &PartitionSnapshots,
    ) {
        let current = newest(snapshots);
        let removed: Vec<_> = list
            .published
            .keys()
            .filter(|uri| !current.contains_key(*uri))
            .collect();
        let before = |entry: &ListedResource| list.published.get(&entry.uri);
        let new = current.values().filter(|entry| {
            // An entry with a new title is listed again.
            before(entry).is_none_or(|(title, _)| *title != entry.title)
        });
        let new: Vec<_> = new
            .map(|entry| self.resource(state, owner, entry))
            .collect();
        let changed = current
            .values()
            .filter(|entry| before(entry).is_some_and(|(_, version)| *version != entry.version));
        let changed: Vec<_> = changed.map(|entry| entry.uri.clone()).collect();
        if !removed.is_empty() || !new.is_empty() {
            server.change_resources(removed, new);
        }
        for uri in changed {
            server.resource_updated(uri);
        }
        // A server that mounts this one may lack the skills extension.
        if !self.by_principal && server.has_skills() {
            list.skills.update(server, snapshots);
        }
        list.published = current
            .into_iter()
            .map(|(uri, entry)| (uri, (entry.title.clone(), entry.version)))
            .collect();
    }

    fn resource(&self, state: &AppState, owner: &Owner, entry: &ListedResource) -> Resource {
        let (state, target) = (state.clone(), entry.target.clone());
        let read = move |cx: Context| {
            let (state, target) = (state.clone(), target.clone());
            async move {
                match target {
                    ResourceTarget::Item(kind, id) => {
                        resources::read_item(&state, kind, id, &cx).await
                    }
                    ResourceTarget::Collection(name) => {
                        resources::read_collection(&state, name, &cx).await
                    }
                }
            }
        };
        let resource = Resource::new(&entry.uri, &entry.name, read)
            .title(&entry.title)
            .mime_type(entry.mime_type);
        if !self.by_principal {
            return resource;
        }
        let owner = owner.clone();
        resource.visible_to(move |who| is_owner(&owner, who))
    }
}

fn is_owner(owner: &Owner, who: Option<&Principal>) -> bool {
    who.is_some_and(|who| Owner::for_principal(who) == *owner)
}

type EvictedList = (Owner, Arc<Mutex<OwnerList>>);

impl OwnerLists {
    /// Returns the list of an owner, and the list to evict if there are too many.
    fn list_for(&mut self, owner: &Owner) -> (Arc<Mutex<OwnerList>>, Option<EvictedList>) {
        self.uses += 1;
        let (used, list) = self.by_owner.entry(owner.clone()).or_default();
        *used = self.uses;
        let list = list.clone();
        (list, self.evict())
    }

    fn evict(&mut self) -> Option<EvictedList> {
        if self.by_owner.len() <= MAX_OWNERS {
            return None;
        }
        let oldest = self.by_owner.iter().min_by_key(|(_, (used, _))| *used);
        let oldest = oldest.map(|(owner, _)| owner.clone())?;
        let (owner, (_, list)) = self.by_owner.remove_entry(&oldest)?;
        Some((owner, list))
    }
}

/// Returns the newest resources, by URI.
fn newest(snapshots: &PartitionSnapshots) -> BTreeMap<String, &ListedResource> {
    let mut all: Vec<&ListedResource> = snapshots
        .values()
        .flat_map(|partition| &partition.resources)
        .collect();
    all.sort_by_key(|entry| (std::cmp::Reverse(entry.version), &entry.uri));
    all.truncate(MAX_LISTED);
    all.into_iter()
        .map(|entry| (entry.uri.clone(), entry))
        .collect()
}

/// The layer that scans before requests for lists.
pub(crate) struct ResourceSyncLayer {
    state: Arc<AppState>,
}

impl ResourceSyncLayer {
    pub(crate) fn new(state: &AppState) -> Self {
        Self {
            state: Arc::new(state.clone()),
        }
    }
}

impl Middleware for ResourceSyncLayer {
    fn handle<'a>(
        &'a self,
        operation: Operation,
        next: Next,
    ) -> std::pin::Pin<Box<dyn Future<Output = OperationResponse> + Send + 'a>> {
        Box::pin(async move {
            if depends_on_lists(&operation) {
                let (state, server) = (&self.state, operation.server());
                state
                    .resource_sync()
                    .refresh(state, server, operation.principal())
                    .await;
            }
            next.run().await
        })
    }
}

/// Returns whether the result of a request depends on the listed resources.
fn depends_on_lists(operation: &Operation) -> bool {
    match operation.method() {
        "resources/list" | "resources/templates/list" | "skills/list" | "subscriptions/listen" => {
            true
        }
        "resources/read" => operation
            .target()
            .is_some_and(|uri| uri.starts_with("collection:") || uri.starts_with("skill:")),
        _ => false,
    }
}

impl AppState {
    /// Scans the databases of a caller after a change and notifies clients.
    pub(crate) async fn sync_resources(&self, cx: &Context) {
        self.resource_sync()
            .refresh(self, cx.server(), cx.principal())
            .await;
    }
}
