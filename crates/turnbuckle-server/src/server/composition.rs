//! Composition of catalogs: a server's own items and those of mounted servers, as one catalog.
//!
//! The catalog is rebuilt on each change. Requests read it with a single load.

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use arc_swap::{ArcSwap, Guard};
use turnbuckle_store::{ChangeBus, ServerChange};

use super::mount::Mount;
use crate::{
    catalog::{Catalog, CatalogEntry, EntryTable},
    sync::lock,
};

/// The catalog of a server, its parts, and the servers that it is mounted in.
pub(super) struct CatalogComposition {
    /// The catalog that serves requests.
    served: ArcSwap<Catalog>,
    parts: Mutex<CatalogParts>,
    /// Compositions that this one is mounted in. They own this one, never the reverse.
    parents: Mutex<Vec<Weak<CatalogComposition>>>,
    bus: Mutex<Arc<dyn ChangeBus>>,
    /// Locked while a list change is published, so that the last digest is that of the served list.
    publishing_list: Mutex<()>,
}

/// What a list change is based on.
#[derive(Clone, Copy)]
enum ChangeSource {
    /// The catalog, which was changed before.
    Catalog,
    /// The caller, who knows what the catalog does not show.
    Caller,
}

#[derive(Clone, Default)]
struct CatalogParts {
    own: Arc<Catalog>,
    mounts: Vec<Mount>,
    /// Conflicts of the last rebuild.
    conflicts: HashSet<NameConflict>,
}

/// The kind and key of a mounted item that is not served.
type NameConflict = (&'static str, String);

/// Held while mounting and unmounting: of two servers mounted into each other concurrently, one must see the other.
static MOUNT_LOCK: Mutex<()> = Mutex::new(());

impl CatalogComposition {
    /// Creates an empty composition that publishes on `bus`.
    pub(super) fn new(bus: Arc<dyn ChangeBus>) -> Arc<Self> {
        Arc::new(Self {
            served: ArcSwap::default(),
            parts: Mutex::default(),
            parents: Mutex::default(),
            bus: Mutex::new(bus),
            publishing_list: Mutex::default(),
        })
    }

    /// Returns an independent copy. It is not mounted where the original is.
    pub(super) fn fork(&self) -> Arc<Self> {
        let parts = lock(&self.parts).clone();
        let fork = Arc::new(Self {
            served: ArcSwap::new(self.served.load_full()),
            parts: Mutex::new(parts),
            parents: Mutex::default(),
            bus: Mutex::new(lock(&self.bus).clone()),
            publishing_list: Mutex::default(),
        });
        let mounted = fork.mounted();
        if !mounted.is_empty() {
            mounted.iter().for_each(|inner| inner.add_parent(&fork));
            // Includes changes made before the copy was registered.
            fork.rebuild(|_| ());
        }
        fork
    }

    pub(super) fn catalog(&self) -> Guard<Arc<Catalog>> {
        self.served.load()
    }

    pub(super) fn set_bus(&self, bus: Arc<dyn ChangeBus>) {
        *lock(&self.bus) = bus;
    }

    /// Changes the server's own items.
    pub(super) fn change<T>(&self, apply: impl FnOnce(&mut Catalog) -> T) -> T {
        let outcome = self.rebuild(|parts| {
            let mut own = Catalog::clone(&parts.own);
            let outcome = apply(&mut own);
            own.finalize();
            // Returned so that it is dropped without a lock: dropping handlers can run any code.
            (outcome, mem::replace(&mut parts.own, Arc::new(own)))
        });
        self.rebuild_parents();
        outcome.0
    }

    /// Changes the server's own items before it is served.
    ///
    /// Avoids copying the catalog for each of many registrations.
    pub(super) fn register(self: &mut Arc<Self>, apply: impl FnOnce(&mut Catalog)) {
        match Arc::get_mut(self).and_then(Self::sole_catalog_mut) {
            Some(own) => {
                apply(Arc::make_mut(own));
                Arc::make_mut(own).finalize();
                let own = Arc::clone(own);
                self.served.store(own);
            }
            None => self.change(apply),
        }
    }

    /// Returns the server's own catalog for modification, if nothing else refers to it.
    fn sole_catalog_mut(&mut self) -> Option<&mut Arc<Catalog>> {
        let parts = self.parts.get_mut();
        let parts = parts.unwrap_or_else(PoisonError::into_inner);
        let is_all = parts.mounts.is_empty() && Arc::ptr_eq(&parts.own, &self.served.load());
        is_all.then(|| {
            self.served = ArcSwap::default();
            &mut parts.own
        })
    }

    /// Mounts a server, and returns the replaced mount with the same prefix. Returns `None` if that would create a
    /// cycle.
    pub(super) fn mount(self: &Arc<Self>, mount: Mount) -> Option<Option<Mount>> {
        let _lock = lock(&MOUNT_LOCK);
        let inner = mount.composition().clone();
        if inner.contains(self, &mut Vec::new()) {
            return None;
        }
        inner.add_parent(self);
        let replaced = self.rebuild(|parts| {
            let same = |existing: &&mut Mount| existing.prefix() == mount.prefix();
            match parts.mounts.iter_mut().find(same) {
                Some(existing) => Some(mem::replace(existing, mount)),
                None => {
                    parts.mounts.push(mount);
                    None
                }
            }
        });
        if let Some(replaced) = &replaced {
            self.detach_from(replaced.composition());
        }
        self.rebuild_parents();
        Some(replaced)
    }

    /// Unmounts a server and returns it.
    pub(super) fn unmount(self: &Arc<Self>, prefix: &str) -> Option<Mount> {
        let _lock = lock(&MOUNT_LOCK);
        let removed = self.rebuild(|parts| {
            let at = |mount: &Mount| mount.prefix() == prefix;
            let at = parts.mounts.iter().position(at)?;
            Some(parts.mounts.remove(at))
        })?;
        self.detach_from(removed.composition());
        self.rebuild_parents();
        Some(removed)
    }

    /// Notifies the clients of this server and of the servers it is mounted in.
    pub(super) fn publish(&self, change: ServerChange) {
        self.publish_from(ChangeSource::Caller, change);
    }

    /// Like [`publish`](Self::publish), for a list of the catalog. Other processes that serve the same list do not announce
    /// the change again.
    pub(super) fn publish_list(&self, change: ServerChange) {
        self.publish_from(ChangeSource::Catalog, change);
    }

    fn publish_from(&self, source: ChangeSource, change: ServerChange) {
        let bus = lock(&self.bus).clone();
        let mut is_announced_for_parents = false;
        for parent in self.parents() {
            is_announced_for_parents |= Arc::ptr_eq(&bus, &lock(&parent.bus));
            parent.propagate(source, &change, &bus);
        }
        match source {
            // The digest would not identify the lists of the others.
            ChangeSource::Catalog if is_announced_for_parents => bus.publish(change),
            ChangeSource::Catalog => {
                let _order = lock(&self.publishing_list);
                match self.served.load_full().list_digest(&change) {
                    Some(digest) => bus.publish_list(change, digest),
                    None => bus.publish(change),
                }
            }
            ChangeSource::Caller => bus.publish(change),
        }
    }

    /// Publishes a change of a mounted server, unless both share a bus.
    fn propagate(
        &self,
        source: ChangeSource,
        change: &ServerChange,
        origin_bus: &Arc<dyn ChangeBus>,
    ) {
        // A task is visible only where it was created.
        if matches!(change, ServerChange::Task { .. }) {
            return;
        }
        if Arc::ptr_eq(origin_bus, &lock(&self.bus)) {
            for parents in self.parents() {
                parents.propagate(source, change, origin_bus);
            }
        } else {
            self.publish_from(source, change.clone());
        }
    }

    /// Changes the parts and rebuilds the catalog.
    fn rebuild<T>(&self, change: impl FnOnce(&mut CatalogParts) -> T) -> T {
        let mut parts = lock(&self.parts);
        let outcome = change(&mut parts);
        let mut catalog = parts.catalog();
        let served = self.served.load();
        if catalog.drops_capability_of(&served) {
            Arc::make_mut(&mut catalog).keep_capabilities_of(&served);
        }
        drop(served);
        let before = self.served.swap(catalog);
        drop(parts);
        drop(before);
        outcome
    }

    fn rebuild_parents(&self) {
        for parents in self.parents() {
            parents.rebuild(|_| ());
            parents.rebuild_parents();
        }
    }

    fn parents(&self) -> Vec<Arc<Self>> {
        lock(&self.parents)
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    fn mounted(&self) -> Vec<Arc<Self>> {
        let parts = lock(&self.parts);
        parts
            .mounts
            .iter()
            .map(|one| one.composition().clone())
            .collect()
    }

    /// Adds a parent, and removes dropped ones.
    fn add_parent(&self, parents: &Arc<Self>) {
        let mut existing = lock(&self.parents);
        existing.retain(|one| one.strong_count() > 0 && !is_same(one, parents));
        existing.push(Arc::downgrade(parents));
    }

    /// Removes this parent from a composition, unless it is mounted twice.
    fn detach_from(self: &Arc<Self>, inner: &Arc<Self>) {
        if !self.mounted().iter().any(|one| Arc::ptr_eq(one, inner)) {
            lock(&inner.parents).retain(|one| one.strong_count() > 0 && !is_same(one, self));
        }
    }

    /// Returns whether this is `other`, or has it mounted at any depth.
    fn contains(self: &Arc<Self>, other: &Arc<Self>, seen: &mut Vec<*const Self>) -> bool {
        if Arc::ptr_eq(self, other) {
            return true;
        }
        if seen.contains(&Arc::as_ptr(self)) {
            return false;
        }
        seen.push(Arc::as_ptr(self));
        self.mounted().iter().any(|one| one.contains(other, seen))
    }
}

impl CatalogParts {
    /// Merges all parts. On a conflict the first item stays.
    fn catalog(&mut self) -> Arc<Catalog> {
        if self.mounts.is_empty() {
            return self.own.clone();
        }
        let mut catalog = Catalog::clone(&self.own);
        let mut conflicts = HashSet::new();
        for mount in &mut self.mounts {
            let (theirs, too_long) = mount.prefixed();
            conflicts.extend(too_long.iter().map(|name| ("tool", name.clone())));
            merge("tool", &mut catalog.tools, &theirs.tools, &mut conflicts);
            merge(
                "prompt",
                &mut catalog.prompts,
                &theirs.prompts,
                &mut conflicts,
            );
            merge(
                "resource",
                &mut catalog.resources,
                &theirs.resources,
                &mut conflicts,
            );
            merge(
                "template",
                &mut catalog.templates,
                &theirs.templates,
                &mut conflicts,
            );
        }
        for (kind, key) in conflicts.difference(&self.conflicts) {
            tracing::warn!(
                kind,
                key,
                "an item of a mounted server is left out: its key is in use or too long"
            );
        }
        self.conflicts = conflicts;
        catalog.finalize();
        Arc::new(catalog)
    }
}

fn merge<T: CatalogEntry>(
    kind: &'static str,
    into: &mut EntryTable<T>,
    from: &EntryTable<T>,
    conflicts: &mut HashSet<NameConflict>,
) {
    for item in from.iter() {
        if into.has(item.key()) {
            conflicts.insert((kind, item.key().to_owned()));
        } else {
            into.put(item.clone());
        }
    }
}

fn is_same(one: &Weak<CatalogComposition>, other: &Arc<CatalogComposition>) -> bool {
    std::ptr::eq(one.as_ptr(), Arc::as_ptr(other))
}

#[cfg(test)]
mod tests {
    use turnbuckle_store::{BusLimits, memory::MemoryBus};

    use super::*;
    use crate::Tool;

    fn composition() -> Arc<CatalogComposition> {
        CatalogComposition::new(Arc::new(MemoryBus::new(&BusLimits::default())))
    }

    fn register(composition: &mut Arc<CatalogComposition>, name: &str) {
        let tool = Tool::new(name, async || Ok(String::new()));
        composition.register(|catalog| catalog.tools.put(tool));
    }

    fn names(composition: &CatalogComposition) -> Vec<String> {
        let catalog = composition.catalog();
        let tools = catalog.tools.iter();
        tools.map(|tool| tool.key().to_owned()).collect()
    }

    fn catalog_ptr(composition: &CatalogComposition) -> *const Catalog {
        Arc::as_ptr(&lock(&composition.parts).own)
    }

    #[test]
    fn registration_before_serving_copies_no_catalog() {
        let mut composition = composition();
        register(&mut composition, "one");
        let before = catalog_ptr(&composition);

        register(&mut composition, "two");

        assert_eq!(catalog_ptr(&composition), before);
        assert_eq!(names(&composition), ["one", "two"]);
    }

    #[test]
    fn a_fork_is_unaffected_by_later_registration() {
        let mut composition = composition();
        register(&mut composition, "one");
        let fork = composition.fork();
        let clone = composition.clone();

        register(&mut composition, "two");

        assert_eq!(names(&fork), ["one"]);
        assert_eq!(names(&clone), ["one", "two"]);
    }
}
