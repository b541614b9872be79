//! Lists as callers see them: one for everyone, or one per set of visible items.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use turnbuckle_protocol::{Principal, Revision};

use super::Listed;
use crate::lifecycle::Rules;

/// Sets of visible items whose lists are kept; callers beyond have theirs written anew.
const MOST_VIEWS: usize = 32;

/// Items in their order, and the list of all of them as bytes, once per revision.
pub(super) struct Listing<T> {
    pub(super) items: Vec<Arc<T>>,
    whole: [OnceLock<Bytes>; Revision::ALL.len()],
}

impl<T: Listed> Listing<T> {
    pub(super) fn new(items: Vec<Arc<T>>) -> Self {
        Self {
            items,
            whole: Default::default(),
        }
    }

    /// Forgets what was written: the items are others now.
    pub(super) fn changed(&mut self) {
        self.whole = Default::default();
    }

    /// At most `size` items from the place `first` on, without the closing brace. `cursor` names what follows an item.
    pub(super) fn page(
        &self,
        rules: &Rules,
        first: usize,
        size: Option<usize>,
        cursor: impl FnOnce(&T) -> String,
    ) -> Bytes {
        if first == 0 && size.is_none_or(|size| self.items.len() <= size) {
            return self.whole[rules.index()]
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

fn write<T: Listed>(rules: &Rules, items: &[Arc<T>]) -> Vec<u8> {
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

/// The lists of those who do not see everything, by what they see. The one used last is the last.
pub(super) struct Views<T> {
    kept: Mutex<Vec<View<T>>>,
}

/// Which items are seen, and their list.
type View<T> = (Box<[bool]>, Arc<Listing<T>>);

impl<T: Listed> Views<T> {
    /// The list that this caller sees of `items`.
    pub(super) fn of(&self, items: &[Arc<T>], principal: Option<&Principal>) -> Arc<Listing<T>> {
        // Before the lock: predicates are code of others.
        let seen: Box<[bool]> = items
            .iter()
            .map(|item| item.visibility().allows(principal))
            .collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let view = match kept.iter().position(|(known, _)| *known == seen) {
            Some(at) => kept.remove(at),
            None => {
                if kept.len() == MOST_VIEWS {
                    kept.remove(0);
                }
                let visible = items.iter().zip(&seen).filter(|(_, seen)| **seen);
                let items = visible.map(|(item, _)| item.clone()).collect();
                (seen, Arc::new(Listing::new(items)))
            }
        };
        let listing = view.1.clone();
        kept.push(view);
        listing
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.lock().unwrap().len()
    }
}

impl<T> Clone for Listing<T> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            whole: self.whole.clone(),
        }
    }
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            whole: Default::default(),
        }
    }
}

impl<T> Clone for Views<T> {
    fn clone(&self) -> Self {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            kept: Mutex::new(kept.clone()),
        }
    }
}

impl<T> Default for Views<T> {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tool, ToolError};

    #[test]
    fn the_lists_of_some_sets_are_kept_and_those_longest_unused_are_dropped() {
        let items: Vec<_> = (0..MOST_VIEWS * 2)
            .map(|at| {
                let subject = at.to_string();
                let tool = Tool::new(format!("tool{at}"), async || Ok::<_, ToolError>(()));
                Arc::new(tool.visible_to(move |principal| {
                    principal.is_some_and(|who| who.subject == subject)
                }))
            })
            .collect();
        let views = Views::default();
        let seen_by = |at: usize| views.of(&items, Some(&Principal::new("", at.to_string())));

        let first = seen_by(0);
        let again = seen_by(0);
        for at in 1..MOST_VIEWS * 2 {
            assert_eq!(seen_by(at).items.len(), 1);
            assert!(Arc::ptr_eq(&first, &seen_by(0)));
        }

        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(views.len(), MOST_VIEWS);
    }
}
