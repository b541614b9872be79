//! Keeps the list of resources true, also when another process changes the files.
//!
//! Before `resources/list` and its like are answered, the files of the caller are looked at: one whose size and time are
//! those of the last look is left alone, so that this costs next to nothing. What is new is offered, what is gone is not,
//! and clients are told.

mod look;
mod skills;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use tokio::sync::Mutex;
use turnbuckle_protocol::Principal;
use turnbuckle_server::middleware::{Answer, Middleware, Next, Operation};
use turnbuckle_server::{Context, Resource, Server};

use crate::desk::Desk;
use crate::{Owner, Owners, resources};
use look::{Entry, Seen, Target};

/// Resources that are listed of one owner: the newest. Templates reach the others.
const MOST_LISTED: usize = 500;
/// Owners whose resources are listed; those of whoever was here longest ago are put away first.
const MOST_OWNERS: usize = 64;

/// What is listed, by owner.
pub(crate) struct Published {
    by_principal: bool,
    shelves: std::sync::Mutex<Shelves>,
}

#[derive(Default)]
struct Shelves {
    of: HashMap<Owner, (u64, Arc<Mutex<Shelf>>)>,
    uses: u64,
}

/// What is listed of one owner.
#[derive(Default)]
struct Shelf {
    is_known: bool,
    seen: HashMap<String, Seen>,
    /// The addresses that are offered, with the titles and the versions of their contents.
    offered: BTreeMap<String, (String, u64)>,
    skills: skills::Offered,
}

impl Published {
    pub(crate) fn new(owners: &Owners) -> Self {
        Self {
            by_principal: matches!(owners, Owners::ByPrincipal),
            shelves: std::sync::Mutex::default(),
        }
    }

    /// Looks at the files of a caller, and offers what is there.
    pub(crate) async fn refresh(&self, desk: &Desk, server: &Server, who: Option<&Principal>) {
        // Whoever owns nothing is shown nothing.
        let Ok(owner) = desk.owners().of(who) else {
            return;
        };
        let (shelf, put_away) = self.lock().shelf(&owner);
        if let Some((owner, shelf)) = put_away {
            self.clear(server, &owner, &*shelf.lock().await);
        }
        // One at a time for each owner, so that news come in the order in which they happen.
        let mut shelf = shelf.lock().await;
        let seen = std::mem::take(&mut shelf.seen);
        let its_owner = owner.clone();
        let looked = desk.block_read(&owner, move |desk| look::look(desk, &its_owner, seen));
        let seen = match looked.await {
            Ok(seen) => seen,
            Err(error) => {
                tracing::warn!(%error, "what is published could not be looked at");
                return;
            }
        };
        if self.by_principal && !shelf.is_known {
            let its_owner = owner.clone();
            let template = resources::collection(desk, &owner);
            server.add_template(template.visible_to(move |who| is_owner(&its_owner, who)));
            shelf.is_known = true;
        }
        self.offer(desk, server, &owner, &mut shelf, &seen);
        shelf.seen = seen;
    }

    /// Offers nothing of an owner any longer. Templates of everyone still reach what is theirs.
    fn clear(&self, server: &Server, owner: &Owner, shelf: &Shelf) {
        server.change_resources(shelf.offered.keys(), []);
        if self.by_principal {
            server.remove_template(&resources::collection_template(owner));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offer(
        &self,
        desk: &Desk,
        server: &Server,
        owner: &Owner,
        shelf: &mut Shelf,
        seen: &HashMap<String, Seen>,
    ) {
        let wanted = newest(seen);
        let gone: Vec<_> = shelf
            .offered
            .keys()
            .filter(|uri| !wanted.contains_key(*uri))
            .collect();
        let before = |entry: &Entry| shelf.offered.get(&entry.uri);
        let new = wanted.values().filter(|entry| {
            // What has got another title is listed anew.
            before(entry).is_none_or(|(title, _)| *title != entry.title)
        });
        let new: Vec<_> = new.map(|entry| self.resource(desk, owner, entry)).collect();
        let changed = wanted
            .values()
            .filter(|entry| before(entry).is_some_and(|(_, version)| *version != entry.version));
        let changed: Vec<_> = changed.map(|entry| entry.uri.clone()).collect();
        if !gone.is_empty() || !new.is_empty() {
            server.change_resources(gone, new);
        }
        for uri in changed {
            server.resource_updated(uri);
        }
        // A server that this one is mounted in need not have any.
        if !self.by_principal && server.has_skills() {
            shelf.skills.offer(server, seen);
        }
        shelf.offered = wanted
            .into_iter()
            .map(|(uri, entry)| (uri, (entry.title.clone(), entry.version)))
            .collect();
    }

    fn resource(&self, desk: &Desk, owner: &Owner, entry: &Entry) -> Resource {
        let (desk, target) = (desk.clone(), entry.target.clone());
        let read = move |cx: Context| {
            let (desk, target) = (desk.clone(), target.clone());
            async move {
                match target {
                    Target::Item(kind, id) => resources::read_item(&desk, kind, id, &cx).await,
                    Target::Collection(name) => resources::read_collection(&desk, name, &cx).await,
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
    who.is_some_and(|who| Owner::principal(who) == *owner)
}

type PutAway = (Owner, Arc<Mutex<Shelf>>);

impl Shelves {
    /// The shelf of an owner, and one to be put away because there are too many.
    fn shelf(&mut self, owner: &Owner) -> (Arc<Mutex<Shelf>>, Option<PutAway>) {
        self.uses += 1;
        let (used, shelf) = self.of.entry(owner.clone()).or_default();
        *used = self.uses;
        let shelf = shelf.clone();
        (shelf, self.make_room())
    }

    fn make_room(&mut self) -> Option<PutAway> {
        if self.of.len() <= MOST_OWNERS {
            return None;
        }
        let oldest = self.of.iter().min_by_key(|(_, (used, _))| *used);
        let oldest = oldest.map(|(owner, _)| owner.clone())?;
        let (owner, (_, shelf)) = self.of.remove_entry(&oldest)?;
        Some((owner, shelf))
    }
}

/// The newest of all that was seen, by address.
fn newest(seen: &HashMap<String, Seen>) -> BTreeMap<String, &Entry> {
    let mut all: Vec<&Entry> = seen.values().flat_map(|seen| &seen.entries).collect();
    all.sort_by_key(|entry| (std::cmp::Reverse(entry.version), &entry.uri));
    all.truncate(MOST_LISTED);
    all.into_iter()
        .map(|entry| (entry.uri.clone(), entry))
        .collect()
}

/// The layer that looks before lists are answered.
pub(crate) struct Layer {
    desk: Arc<Desk>,
}

impl Layer {
    pub(crate) fn new(desk: &Desk) -> Self {
        Self {
            desk: Arc::new(desk.clone()),
        }
    }
}

impl Middleware for Layer {
    fn handle<'a>(
        &'a self,
        operation: Operation,
        next: Next,
    ) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            if concerns_lists(&operation) {
                let (desk, server) = (&self.desk, operation.server());
                desk.published()
                    .refresh(desk, server, operation.principal())
                    .await;
            }
            next.run().await
        })
    }
}

/// Says whether an answer depends on what is listed.
fn concerns_lists(operation: &Operation) -> bool {
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

impl Desk {
    /// Looks at the files of a caller after they were changed, and tells clients of it.
    pub(crate) async fn publish(&self, cx: &Context) {
        self.published()
            .refresh(self, cx.server(), cx.principal())
            .await;
    }
}
