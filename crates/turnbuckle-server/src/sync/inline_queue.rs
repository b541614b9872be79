//! A queue optimized for at most one element.

use std::collections::VecDeque;

/// A FIFO queue. The first element is stored inline, so a queue of one does not allocate.
pub(crate) struct InlineQueue<T> {
    first: Option<T>,
    /// The elements after the first; empty if `first` is `None`.
    rest: VecDeque<T>,
}

impl<T> InlineQueue<T> {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn push(&mut self, value: T) {
        match &self.first {
            None => self.first = Some(value),
            Some(_) => self.rest.push_back(value),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = self.first.take()?;
        self.first = self.rest.pop_front();
        Some(first)
    }

    /// Removes all elements: returns the first and moves the others into `rest`, which must be empty.
    pub(crate) fn take_all(&mut self, rest: &mut VecDeque<T>) -> Option<T> {
        let first = self.first.take()?;
        if !self.rest.is_empty() {
            std::mem::swap(&mut self.rest, rest);
        }
        Some(first)
    }

    pub(crate) fn clear(&mut self) {
        self.first = None;
        self.rest.clear();
    }
}

impl<T> Default for InlineQueue<T> {
    fn default() -> Self {
        Self {
            first: None,
            rest: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(numbers: impl IntoIterator<Item = u8>) -> InlineQueue<u8> {
        let mut queue = InlineQueue::default();
        numbers.into_iter().for_each(|number| queue.push(number));
        queue
    }

    #[test]
    fn values_are_popped_in_order() {
        let mut queue = queue([1, 2, 3]);

        assert_eq!((queue.pop(), queue.len()), (Some(1), 2));
        queue.push(4);
        let remaining: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();

        assert_eq!(remaining, [2, 3, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn take_all_returns_the_first_and_moves_the_rest() {
        for count in 0..4 {
            let (mut queue, mut rest) = (queue(1..=count), VecDeque::new());

            let first = queue.take_all(&mut rest);

            assert_eq!(first, (count > 0).then_some(1));
            assert!(rest.into_iter().eq(2..=count), "{count}");
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn clear_removes_every_value() {
        let mut queue = queue([1, 2, 3]);

        queue.clear();

        assert_eq!((queue.len(), queue.pop()), (0, None));
    }
}
