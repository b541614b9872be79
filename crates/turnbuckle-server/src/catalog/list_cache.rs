//! Cached lists: one for all callers, or one per set of visible items.

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use turnbuckle_protocol::{Principal, Revision};

use crate::{catalog::CatalogEntry, lifecycle::RevisionRules, sync::lock};

/// Maximum number of cached sets of visible items. Lists of other sets are written each time.
const MAX_VISIBLE_LISTS: usize = 32;

/// Items in order, with the encoded full list per revision.
pub(crate) struct ListCache<T> {
    pub(crate) items: Vec<Arc<T>>,
    full_list: [OnceLock<Bytes>; Revision::ALL.len()],
}

impl<T: CatalogEntry> ListCache<T> {
    pub(crate) fn new(items: Vec<Arc<T>>) -> Self {
        Self {
            items,
            full_list: Default::default(),
        }
    }

    /// Drops the encoded lists after a change.
    pub(crate) fn invalidate(&mut self) {
        self.full_list = Default::default();
    }

    /// Returns at most `size` items starting at `first`, without the closing brace. `cursor` encodes the next position.
    pub(crate) fn page(
        &self,
        rules: &RevisionRules,
        first: usize,
        size: Option<usize>,
        cursor: impl FnOnce(&T) -> String,
    ) -> Bytes {
        if first == 0 && size.is_none_or(|size| self.items.len() <= size) {
            return self.full_list[rules.index()]
                .get_or_init(|| write(rules, &self.items).into())
                .clone();
        }
        let rest = &self.items[first..];
        let sent = &rest[..size.map_or(rest.len(), |size| size.min(rest.len()))];
        let mut page = write(rules, sent);
        if let Some(last) = sent.last().filter(|_| sent.len() < rest.len()) {
            page.extend_from_slice(br#","nextCursor":""#);
            page.extend_from_slice(cursor(last).as_bytes());
            page.push(b'"');
        }
        page.into()
    }
}

fn write<T: CatalogEntry>(rules: &RevisionRules, items: &[Arc<T>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(T::MEMBER.as_bytes());
    out.extend_from_slice(b"\":[");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        item.write(rules, &mut out);
    }
    out.push(b']');
    out
}

/// Cached lists of callers that do not see all items, in order of last use.
pub(crate) struct VisibleLists<T> {
    cached: Mutex<Vec<VisibleList<T>>>,
}

/// The visible items as a mask, and their list.
type VisibleList<T> = (Box<[bool]>, Arc<ListCache<T>>);

impl<T: CatalogEntry> VisibleLists<T> {
    /// Returns the list of `items` that the caller may see.
    pub(crate) fn for_caller(
        &self,
        items: &[Arc<T>],
        principal: Option<&Principal>,
    ) -> Arc<ListCache<T>> {
        // Evaluated before taking the lock: predicates are user code.
        let visible: Box<[bool]> = items
            .iter()
            .map(|item| item.visibility().allows(principal))
            .collect();
        let mut cached = lock(&self.cached);
        let visible_list = match cached.iter().position(|(mask, _)| *mask == visible) {
            Some(at) => cached.remove(at),
            None => {
                if cached.len() == MAX_VISIBLE_LISTS {
                    cached.remove(0);
                }
                let shown = items.iter().zip(&visible).filter(|(_, visible)| **visible);
                let items = shown.map(|(item, _)| item.clone()).collect();
                (visible, Arc::new(ListCache::new(items)))
            }
        };
        let list_cache = visible_list.1.clone();
        cached.push(visible_list);
        list_cache
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.cached.lock().unwrap().len()
    }
}

impl<T> Clone for ListCache<T> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            full_list: self.full_list.clone(),
        }
    }
}

impl<T> Default for ListCache<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            full_list: Default::default(),
        }
    }
}

impl<T> Clone for VisibleLists<T> {
    fn clone(&self) -> Self {
        let cached = lock(&self.cached);
        Self {
            cached: Mutex::new(cached.clone()),
        }
    }
}

impl<T> Default for VisibleLists<T> {
    fn default() -> Self {
        Self {
            cached: Mutex::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tool;

    #[test]
    fn the_lists_of_some_sets_are_kept_and_those_longest_unused_are_dropped() {
        let items: Vec<_> = (0..MAX_VISIBLE_LISTS * 2)
            .map(|at| {
                let subject = at.to_string();
                let tool = Tool::new(format!("tool{at}"), async || Ok(()));
                Arc::new(tool.visible_to(move |principal| {
                    principal.is_some_and(|principal| principal.subject == subject)
                }))
            })
            .collect();
        let visible_lists = VisibleLists::default();
        let list_for =
            |at: usize| visible_lists.for_caller(&items, Some(&Principal::new("", at.to_string())));

        let first = list_for(0);
        let repeated = list_for(0);
        for at in 1..MAX_VISIBLE_LISTS * 2 {
            assert_eq!(list_for(at).items.len(), 1);
            assert!(Arc::ptr_eq(&first, &list_for(0)));
        }

        assert!(Arc::ptr_eq(&first, &repeated));
        assert_eq!(visible_lists.len(), MAX_VISIBLE_LISTS);
    }
}
