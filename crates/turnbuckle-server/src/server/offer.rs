//! What a server offers: its own things and those of the servers mounted in it, as one catalog.
//!
//! The catalog is put together when something changes. Requests find it whole, at the cost of one load.

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use arc_swap::{ArcSwap, Guard};
use turnbuckle_store::{Bus, Change};

use super::mount::Mount;
use crate::catalog::{Catalog, Listed, Table};

/// What a server offers, how it came together, and who has to know when it changes.
pub(super) struct Offer {
    /// What requests are answered from.
    served: ArcSwap<Catalog>,
    parts: Mutex<Parts>,
    /// The offers that this one is a part of. They hold this one, never the other way round.
    outer: Mutex<Vec<Weak<Offer>>>,
    bus: Mutex<Arc<dyn Bus>>,
}

#[derive(Clone, Default)]
struct Parts {
    own: Arc<Catalog>,
    mounts: Vec<Mount>,
    /// What was left out of the catalog when it was last put together.
    left_out: HashSet<LeftOut>,
}

/// The kind and the key of something mounted that is not offered.
type LeftOut = (&'static str, String);

/// Held while servers are mounted and unmounted: of two that are mounted into each other at once, one must see the other.
static MOUNTING: Mutex<()> = Mutex::new(());

impl Offer {
    /// Nothing yet; changes are told on `bus`.
    pub(super) fn new(bus: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self {
            served: ArcSwap::default(),
            parts: Mutex::default(),
            outer: Mutex::default(),
            bus: Mutex::new(bus),
        })
    }

    /// The same offer, to go its own way from here. Nothing is mounted in what it is mounted in.
    pub(super) fn fork(&self) -> Arc<Self> {
        let parts = lock(&self.parts).clone();
        let fork = Arc::new(Self {
            served: ArcSwap::new(self.served.load_full()),
            parts: Mutex::new(parts),
            outer: Mutex::default(),
            bus: Mutex::new(lock(&self.bus).clone()),
        });
        let mounted = fork.mounted();
        if !mounted.is_empty() {
            mounted.iter().for_each(|inner| inner.join(&fork));
            // What changed before they knew of the new one.
            fork.put_together(|_| ());
        }
        fork
    }

    pub(super) fn catalog(&self) -> Guard<Arc<Catalog>> {
        self.served.load()
    }

    pub(super) fn tell_on(&self, bus: Arc<dyn Bus>) {
        *lock(&self.bus) = bus;
    }

    /// Changes what the server itself offers.
    pub(super) fn change<T>(&self, apply: impl FnOnce(&mut Catalog) -> T) -> T {
        let outcome = self.put_together(|parts| {
            let mut own = Catalog::clone(&parts.own);
            let outcome = apply(&mut own);
            own.settle();
            // Given back to be dropped when nothing is locked: handlers may do anything as they end.
            (outcome, mem::replace(&mut parts.own, Arc::new(own)))
        });
        self.refresh_outer();
        outcome.0
    }

    /// Changes what a server itself offers that nobody serves yet.
    ///
    /// Whoever registers a thousand tools, one after the other, then pays for a thousand, and not for a copy of all of them each
    /// time.
    pub(super) fn register(self: &mut Arc<Self>, apply: impl FnOnce(&mut Catalog)) {
        match Arc::get_mut(self).and_then(Self::own_alone) {
            Some(own) => {
                apply(Arc::make_mut(own));
                Arc::make_mut(own).settle();
                let own = Arc::clone(own);
                self.served.store(own);
            }
            None => self.change(apply),
        }
    }

    /// The server's own catalog, no longer served, if it is all there is.
    fn own_alone(&mut self) -> Option<&mut Arc<Catalog>> {
        let parts = self.parts.get_mut();
        let parts = parts.unwrap_or_else(PoisonError::into_inner);
        let is_all = parts.mounts.is_empty() && Arc::ptr_eq(&parts.own, &self.served.load());
        is_all.then(|| {
            self.served = ArcSwap::default();
            &mut parts.own
        })
    }

    /// Mounts a server, in the place of one with the same prefix. Returns what was there, or `None` if it would make a
    /// server part of itself.
    pub(super) fn mount(self: &Arc<Self>, mount: Mount) -> Option<Option<Mount>> {
        let _alone = lock(&MOUNTING);
        let inner = mount.offer().clone();
        if inner.contains(self, &mut Vec::new()) {
            return None;
        }
        inner.join(self);
        let replaced = self.put_together(|parts| {
            let same = |known: &&mut Mount| known.prefix() == mount.prefix();
            match parts.mounts.iter_mut().find(same) {
                Some(known) => Some(mem::replace(known, mount)),
                None => {
                    parts.mounts.push(mount);
                    None
                }
            }
        });
        if let Some(replaced) = &replaced {
            self.part_from(replaced.offer());
        }
        self.refresh_outer();
        Some(replaced)
    }

    /// Unmounts a server and returns it.
    pub(super) fn unmount(self: &Arc<Self>, prefix: &str) -> Option<Mount> {
        let _alone = lock(&MOUNTING);
        let removed = self.put_together(|parts| {
            let at = |mount: &Mount| mount.prefix() == prefix;
            let at = parts.mounts.iter().position(at)?;
            Some(parts.mounts.remove(at))
        })?;
        self.part_from(removed.offer());
        self.refresh_outer();
        Some(removed)
    }

    /// Tells the clients of this server, and of all that it is mounted in.
    pub(super) fn publish(&self, change: Change) {
        let bus = lock(&self.bus).clone();
        for outer in self.outer() {
            outer.pass_on(&change, &bus);
        }
        bus.publish(change);
    }

    /// Publishes what one that is mounted here tells, unless both share a bus.
    fn pass_on(&self, change: &Change, told: &Arc<dyn Bus>) {
        // A task is known only where it was begun.
        if matches!(change, Change::Task { .. }) {
            return;
        }
        if Arc::ptr_eq(told, &lock(&self.bus)) {
            for outer in self.outer() {
                outer.pass_on(change, told);
            }
        } else {
            self.publish(change.clone());
        }
    }

    /// Changes the parts, and puts the catalog together anew.
    fn put_together<T>(&self, change: impl FnOnce(&mut Parts) -> T) -> T {
        let mut parts = lock(&self.parts);
        let outcome = change(&mut parts);
        let mut catalog = parts.catalog();
        let served = self.served.load();
        if catalog.forgets(&served) {
            Arc::make_mut(&mut catalog).remember(&served);
        }
        drop(served);
        let before = self.served.swap(catalog);
        drop(parts);
        drop(before);
        outcome
    }

    fn refresh_outer(&self) {
        for outer in self.outer() {
            outer.put_together(|_| ());
            outer.refresh_outer();
        }
    }

    fn outer(&self) -> Vec<Arc<Self>> {
        lock(&self.outer).iter().filter_map(Weak::upgrade).collect()
    }

    fn mounted(&self) -> Vec<Arc<Self>> {
        let parts = lock(&self.parts);
        parts.mounts.iter().map(|one| one.offer().clone()).collect()
    }

    /// Notes that this offer is part of another, and forgets those that are gone.
    fn join(&self, outer: &Arc<Self>) {
        let mut known = lock(&self.outer);
        known.retain(|one| one.strong_count() > 0 && !is(one, outer));
        known.push(Arc::downgrade(outer));
    }

    /// Is no longer told of changes of what was mounted, unless it is mounted a second time.
    fn part_from(self: &Arc<Self>, inner: &Arc<Self>) {
        if !self.mounted().iter().any(|one| Arc::ptr_eq(one, inner)) {
            lock(&inner.outer).retain(|one| one.strong_count() > 0 && !is(one, self));
        }
    }

    /// Says whether this is the other one, or has it mounted at any depth.
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

impl Parts {
    /// Everything as one catalog. What is there first stays, and what has no place is left out.
    fn catalog(&mut self) -> Arc<Catalog> {
        if self.mounts.is_empty() {
            return self.own.clone();
        }
        let mut catalog = Catalog::clone(&self.own);
        let mut left_out = HashSet::new();
        for mount in &mut self.mounts {
            let (theirs, too_long) = mount.renamed();
            left_out.extend(too_long.iter().map(|name| ("tool", name.clone())));
            merge("tool", &mut catalog.tools, &theirs.tools, &mut left_out);
            merge(
                "prompt",
                &mut catalog.prompts,
                &theirs.prompts,
                &mut left_out,
            );
            merge(
                "resource",
                &mut catalog.resources,
                &theirs.resources,
                &mut left_out,
            );
            merge(
                "template",
                &mut catalog.templates,
                &theirs.templates,
                &mut left_out,
            );
        }
        for (kind, key) in left_out.difference(&self.left_out) {
            tracing::warn!(
                kind,
                key,
                "left out of a mounted server: the key is taken or too long"
            );
        }
        self.left_out = left_out;
        catalog.settle();
        Arc::new(catalog)
    }
}

fn merge<T: Listed>(
    kind: &'static str,
    into: &mut Table<T>,
    from: &Table<T>,
    left_out: &mut HashSet<LeftOut>,
) {
    for item in from.iter() {
        if into.has(item.key()) {
            left_out.insert((kind, item.key().to_owned()));
        } else {
            into.put(item.clone());
        }
    }
}

fn is(one: &Weak<Offer>, other: &Arc<Offer>) -> bool {
    std::ptr::eq(one.as_ptr(), Arc::as_ptr(other))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic leaves a half-made value behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use turnbuckle_store::{BusLimits, memory::MemoryBus};

    use super::*;
    use crate::{Tool, ToolError};

    fn offer() -> Arc<Offer> {
        Offer::new(Arc::new(MemoryBus::new(&BusLimits::default())))
    }

    fn register(offer: &mut Arc<Offer>, name: &str) {
        let tool = Tool::new(name, async || Ok::<_, ToolError>(String::new()));
        offer.register(|catalog| catalog.tools.put(tool));
    }

    fn names(offer: &Offer) -> Vec<String> {
        let catalog = offer.catalog();
        let tools = catalog.tools.iter();
        tools.map(|tool| tool.key().to_owned()).collect()
    }

    fn place(offer: &Offer) -> *const Catalog {
        Arc::as_ptr(&lock(&offer.parts).own)
    }

    #[test]
    fn what_is_registered_before_serving_is_never_copied() {
        let mut offer = offer();
        register(&mut offer, "one");
        let before = place(&offer);

        register(&mut offer, "two");

        assert_eq!(place(&offer), before);
        assert_eq!(names(&offer), ["one", "two"]);
    }

    #[test]
    fn what_somebody_else_has_stays_as_it_is() {
        let mut offer = offer();
        register(&mut offer, "one");
        let fork = offer.fork();
        let held = offer.clone();

        register(&mut offer, "two");

        assert_eq!(names(&fork), ["one"]);
        assert_eq!(names(&held), ["one", "two"]);
    }
}
