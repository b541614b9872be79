//! A queue that mostly holds one thing, if any.

use std::collections::VecDeque;

/// First in, first out. The first lies in the queue itself: a queue of one needs no other place.
pub(crate) struct ShortQueue<T> {
    first: Option<T>,
    /// Those behind it; empty if there is no first.
    more: VecDeque<T>,
}

impl<T> ShortQueue<T> {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn push(&mut self, last: T) {
        match &self.first {
            None => self.first = Some(last),
            Some(_) => self.more.push_back(last),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = self.first.take()?;
        self.first = self.more.pop_front();
        Some(first)
    }

    /// Takes all of it: the first, and what is behind it into `more`, which is empty.
    pub(crate) fn take(&mut self, more: &mut VecDeque<T>) -> Option<T> {
        let first = self.first.take()?;
        if !self.more.is_empty() {
            std::mem::swap(&mut self.more, more);
        }
        Some(first)
    }

    pub(crate) fn clear(&mut self) {
        self.first = None;
        self.more.clear();
    }
}

impl<T> Default for ShortQueue<T> {
    fn default() -> Self {
        Self {
            first: None,
            more: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(numbers: impl IntoIterator<Item = u8>) -> ShortQueue<u8> {
        let mut queue = ShortQueue::default();
        numbers.into_iter().for_each(|number| queue.push(number));
        queue
    }

    #[test]
    fn what_came_first_goes_first() {
        let mut queue = queue([1, 2, 3]);

        assert_eq!((queue.pop(), queue.len()), (Some(1), 2));
        queue.push(4);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();

        assert_eq!(rest, [2, 3, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn all_of_it_can_be_taken_at_once() {
        for count in 0..4 {
            let (mut queue, mut more) = (queue(1..=count), VecDeque::new());

            let first = queue.take(&mut more);

            assert_eq!(first, (count > 0).then_some(1));
            assert!(more.into_iter().eq(2..=count), "{count}");
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn nothing_is_left_of_a_queue_that_was_cleared() {
        let mut queue = queue([1, 2, 3]);

        queue.clear();

        assert_eq!((queue.len(), queue.pop()), (0, None));
    }
}
