//! The order in which things go.

use std::collections::VecDeque;

/// First in, first out, with entries that may have lost their meaning meanwhile.
pub(super) struct Queue<T> {
    entries: VecDeque<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
        }
    }
}

impl<T> Queue<T> {
    /// So many entries without meaning are not worth a look.
    const FEW: usize = 64;

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

    /// Drops entries without meaning once they are more than the others, of which there are at most `meaning`.
    ///
    /// A queue in which all have their meaning is never searched, and else each push pays for a constant share.
    pub(super) fn compact(&mut self, meaning: usize, has_meaning: impl FnMut(&T) -> bool) {
        if self.entries.len() > meaning * 2 + Self::FEW {
            self.entries.retain(has_meaning);
        }
    }
}
