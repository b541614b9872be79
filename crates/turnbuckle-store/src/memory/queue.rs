//! The order in which things go.

use std::collections::VecDeque;

/// First in, first out, with entries that may have lost their meaning meanwhile.
pub(super) struct Queue<T> {
    entries: VecDeque<T>,
    /// Look for entries without meaning when there are more than this.
    compact_at: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            compact_at: Self::SMALL,
        }
    }
}

impl<T> Queue<T> {
    const SMALL: usize = 64;

    pub(super) fn push(&mut self, entry: T) {
        self.entries.push_back(entry);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        self.entries.pop_front()
    }

    pub(super) fn pop_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        self.entries
            .front()
            .is_some_and(wanted)
            .then(|| self.pop())?
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Drops entries without meaning, seldom enough that each push pays for a constant share.
    pub(super) fn compact(&mut self, has_meaning: impl FnMut(&T) -> bool) {
        if self.entries.len() > self.compact_at {
            self.entries.retain(has_meaning);
            self.compact_at = Self::SMALL.max(self.entries.len() * 2);
        }
    }
}
