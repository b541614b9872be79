//! Notifications of a relay that wait for the client.
//!
//! A relay passes on what arrives on a connection that many clients share, so it cannot wait for a slow one. The queue is
//! bounded: newer progress replaces older, and the oldest of the other notifications are dropped.

use std::collections::VecDeque;

use bytes::Bytes;
use turnbuckle_protocol::types::LogLevel;

/// Maximum number of queued notifications.
const MAX_MESSAGES: usize = 64;
/// Maximum size of queued notifications; one that is larger is queued alone.
const MAX_BYTES: usize = 256 * 1024;

/// What a queued notification may be dropped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayedKind {
    /// Newer progress contains all of it.
    Progress,
    /// A log message that goes to a session: its level is compared when it is sent.
    Log(LogLevel),
    /// All others.
    Other,
}

/// The queue of one request.
#[derive(Default)]
pub(crate) struct RelayedQueue {
    messages: VecDeque<(RelayedKind, Bytes)>,
    bytes: usize,
    /// The number of dropped notifications, except replaced progress.
    dropped: u64,
}

impl RelayedQueue {
    /// Queues a notification, and drops others if the queue is full.
    pub(crate) fn push(&mut self, kind: RelayedKind, message: Bytes) {
        while !self.has_room(message.len()) {
            self.drop_one(kind);
        }
        self.bytes += message.len();
        self.messages.push_back((kind, message));
    }

    /// Takes the oldest notification.
    pub(crate) fn pop(&mut self) -> Option<(RelayedKind, Bytes)> {
        let (kind, message) = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some((kind, message))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn has_room(&self, bytes: usize) -> bool {
        let fits = self.messages.len() < MAX_MESSAGES && self.bytes + bytes <= MAX_BYTES;
        fits || self.messages.is_empty()
    }

    /// Makes room: drops the oldest progress if newer follows it, otherwise the oldest notification of another kind.
    fn drop_one(&mut self, next: RelayedKind) {
        let is_progress = |(kind, _): &(RelayedKind, Bytes)| *kind == RelayedKind::Progress;
        let oldest = self.messages.iter().position(is_progress);
        let newest = self.messages.iter().rposition(is_progress);
        let is_replaced = next == RelayedKind::Progress || oldest != newest;
        let replaced = oldest.filter(|_| is_replaced);
        let index = replaced.unwrap_or_else(|| {
            self.dropped += 1;
            usize::from(oldest == Some(0) && self.messages.len() > 1)
        });
        if let Some((_, message)) = self.messages.remove(index) {
            self.bytes -= message.len();
        }
    }
}

impl Drop for RelayedQueue {
    fn drop(&mut self) {
        if self.dropped > 0 {
            let dropped = self.dropped;
            tracing::debug!(dropped, "notifications were dropped for a slow client");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut RelayedQueue, kind: RelayedKind, text: &str) {
        queue.push(kind, Bytes::copy_from_slice(text.as_bytes()));
    }

    fn texts(queue: &mut RelayedQueue) -> Vec<String> {
        std::iter::from_fn(|| queue.pop())
            .map(|(_, message)| String::from_utf8(message.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn the_newest_progress_and_the_newest_logs_are_kept() {
        let mut queue = RelayedQueue::default();
        push(&mut queue, RelayedKind::Progress, "p");
        for number in 0..200 {
            push(&mut queue, RelayedKind::Other, &format!("log {number}"));
        }
        for number in 0..1_000 {
            push(
                &mut queue,
                RelayedKind::Progress,
                &format!("progress {number}"),
            );
        }

        let dropped = queue.dropped;
        let left = texts(&mut queue);

        assert_eq!(left.len(), MAX_MESSAGES);
        assert_eq!(left.last().unwrap(), "progress 999");
        assert_eq!(
            left.iter().filter(|text| text.contains("progress")).count(),
            1
        );
        assert_eq!(left[left.len() - 2], "log 199");
        assert_eq!(dropped, 200 - 63);
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn the_size_is_bounded_and_one_large_notification_passes() {
        let mut queue = RelayedQueue::default();
        let large = "x".repeat(MAX_BYTES * 2);
        push(&mut queue, RelayedKind::Other, "small");
        push(&mut queue, RelayedKind::Other, &large);
        assert_eq!(texts(&mut queue), [large]);
        for _ in 0..50 {
            push(&mut queue, RelayedKind::Other, &"y".repeat(MAX_BYTES / 4));
        }
        assert_eq!(texts(&mut queue).len(), 4);
    }
}
