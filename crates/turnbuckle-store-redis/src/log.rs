//! The logs of changes and of control messages: streams with a counter, written by every process and read by every process.
//!
//! One task writes what this process publishes, in order; one task reads both logs and the inbox of this process with one blocking
//! command. Subscribers get the entries from channels of this process.

mod publisher;
mod reader;

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub(crate) use publisher::{PUBLISH, Publisher, QueuedChange};
pub(crate) use reader::{BLOCK, LogReader, LogStart, StreamEntry, entry_id, parse_instance};
use tokio::sync::broadcast;
use turnbuckle_store::{
    BusLimits, ControlMessage, InstanceId, InstanceMessage, Position, PositionedChange,
    SubscriberLagged,
};

use crate::connection::lock;

/// A log keeps this many times the entries that it buffers for subscribers.
const LOG_LENGTH: usize = 100;

/// Returns the number of entries that Redis keeps of a log.
pub(crate) fn log_length(limits: &BusLimits) -> usize {
    capacity(limits) * LOG_LENGTH
}

fn capacity(limits: &BusLimits) -> usize {
    // The channels panic if their capacity is 0.
    limits.capacity.clamp(1, 1 << 20)
}

/// Messages that an inbox holds for a receiver that is busy.
const INBOX_CAPACITY: usize = 1_024;

/// The messages of which duplicates are recognized.
const REMEMBERED_MESSAGES: usize = 1_024;

type Sender<T> = broadcast::Sender<Result<T, SubscriberLagged>>;

/// The channels of this process that the reader fills.
pub(crate) struct LogChannels {
    pub(crate) changes: Sender<PositionedChange>,
    pub(crate) control: Sender<ControlMessage>,
    inboxes: Mutex<Inboxes>,
    /// The newest position of the bus that was read.
    position: AtomicU64,
}

#[derive(Default)]
struct Inboxes {
    senders: HashMap<InstanceId, Sender<InstanceMessage>>,
    recent: VecDeque<u64>,
}

impl LogChannels {
    pub(crate) fn new(limits: &BusLimits, position: u64) -> Self {
        let capacity = capacity(limits);
        Self {
            changes: broadcast::Sender::new(capacity),
            control: broadcast::Sender::new(capacity),
            inboxes: Mutex::default(),
            position: AtomicU64::new(position),
        }
    }

    pub(crate) fn position(&self) -> Position {
        Position::new(self.position.load(Ordering::Acquire))
    }

    fn set_position(&self, position: u64) {
        self.position.store(position, Ordering::Release);
    }

    /// Opens the inbox of an instance of this process.
    pub(crate) fn open_inbox(
        &self,
        id: InstanceId,
    ) -> broadcast::Receiver<Result<InstanceMessage, SubscriberLagged>> {
        let mut inboxes = lock(&self.inboxes);
        let sender = inboxes
            .senders
            .entry(id)
            .or_insert_with(|| broadcast::Sender::new(INBOX_CAPACITY));
        sender.subscribe()
    }

    /// Removes the inbox of an instance that has left.
    pub(crate) fn close_inbox(&self, id: &InstanceId) {
        lock(&self.inboxes).senders.remove(id);
    }

    /// Hands a message to its receiver, once.
    fn deliver(&self, receiver: &InstanceId, number: u64, message: InstanceMessage) {
        let mut inboxes = lock(&self.inboxes);
        if inboxes.recent.contains(&number) {
            return;
        }
        if inboxes.recent.len() == REMEMBERED_MESSAGES {
            inboxes.recent.pop_front();
        }
        inboxes.recent.push_back(number);
        if let Some(sender) = inboxes.senders.get(receiver) {
            // Fails only without subscribers.
            let _ = sender.send(Ok(message));
        }
    }

    /// Tells all receivers of messages that some may have been lost.
    fn lag_inboxes(&self) {
        for sender in lock(&self.inboxes).senders.values() {
            let _ = sender.send(Err(SubscriberLagged { missed: 1 }));
        }
    }
}

/// Ends a task when dropped.
pub(crate) struct TaskGuard(tokio::task::JoinHandle<()>);

impl TaskGuard {
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits before the next attempt: longer after more failures, up to a second.
pub(crate) async fn pause_after(failures: u32) {
    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(1);
    let pause = SHORT * 2u32.pow(failures.min(8));
    tokio::time::sleep(pause.min(LONG)).await;
}

/// The connection that blocks, and what the reader of this process needs.
pub(crate) struct ReaderParts {
    pub(crate) connection: Arc<crate::connection::Connection>,
    pub(crate) keys: crate::keys::Keys,
    pub(crate) sealer: Arc<crate::sealing::Sealer>,
    pub(crate) channels: Arc<LogChannels>,
    /// The name of this process, for its inbox.
    pub(crate) process: String,
}
