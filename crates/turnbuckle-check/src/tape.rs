//! All that was said, by both sides.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;

/// How much of what the other side says is taken down, in bytes and in entries: whoever says more is not listened to any more.
const ROOM: usize = 128 * 1024 * 1024;
const ENTRIES: usize = 100_000;

/// All that was said, in the order in which it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    entries: Arc<Mutex<Vec<Entry>>>,
    received: Arc<AtomicUsize>,
    beside: bool,
}

/// Something that was said.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Which way it went.
    pub(crate) way: Way,
    /// On which connection, exchange or stream: what belongs together has the same number.
    pub(crate) channel: usize,
    /// What HTTP says before the body, if this is the beginning of a request or response.
    pub(crate) head: Option<Head>,
    /// The body, the line, or the data of an event.
    pub(crate) text: String,
    /// The id and the type of an event of a stream.
    pub(crate) event: Option<EventHead>,
    /// The entry that this one answers, if it is known.
    pub(crate) answers: Option<usize>,
    /// Whether it is wrong on purpose, to see what comes of it.
    pub(crate) deliberate: bool,
    /// Whether it was not UTF-8, so that the text is not quite what was said.
    pub(crate) garbled: bool,
    /// Whether there was more of it than is kept.
    pub(crate) cut: bool,
    /// Whether it was said in another revision than the one that is looked at.
    pub(crate) beside: bool,
    /// Whether it is an event that came before, and comes again because its stream was resumed.
    pub(crate) replayed: bool,
    /// The message, once somebody has asked for it: many rules look at the same one.
    pub(crate) read: Arc<OnceLock<Option<Value>>>,
}

/// Which way something went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From us.
    Sent,
    /// To us.
    Received,
}

/// What HTTP says before a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// `POST /mcp`, or `200`.
    pub(crate) line: String,
    /// The headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

/// What an event of a stream says beside its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventHead {
    pub(crate) id: String,
    pub(crate) name: String,
}

impl Entry {
    /// Something that was sent.
    pub(crate) fn sent(channel: usize, text: impl Into<String>) -> Self {
        Self::new(Way::Sent, channel, text.into())
    }

    /// Something that was received.
    pub(crate) fn received(channel: usize, text: impl Into<String>) -> Self {
        Self::new(Way::Received, channel, text.into())
    }

    fn new(way: Way, channel: usize, text: String) -> Self {
        Self {
            way,
            channel,
            head: None,
            text,
            event: None,
            answers: None,
            deliberate: false,
            read: Arc::default(),
            garbled: false,
            cut: false,
            beside: false,
            replayed: false,
        }
    }

    /// Returns the message, if the text is JSON.
    pub(crate) fn json(&self) -> Option<Value> {
        let read = || serde_json::from_str(&self.text).ok();
        self.read.get_or_init(read).clone()
    }
}

impl Head {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl Tape {
    /// Returns the same tape for what is said in another revision: rules that look at everything pass over it.
    pub(crate) fn beside(&self) -> Self {
        Self {
            beside: true,
            ..self.clone()
        }
    }

    /// Takes something down; returns its number.
    pub(crate) fn push(&self, entry: Entry) -> usize {
        self.weigh(&entry);
        let mut entries = self.entries();
        entries.push(Entry {
            beside: self.beside,
            ..entry
        });
        entries.len() - 1
    }

    /// Changes an entry, for example when the body of a response has come.
    pub(crate) fn amend(&self, number: usize, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries().get_mut(number) {
            let before = entry.text.len();
            change(entry);
            entry.read = Arc::default();
            let more = entry.text.len().saturating_sub(before);
            self.received.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Says whether the other side has said more than anybody wants to know.
    pub(crate) fn is_full(&self) -> bool {
        self.received.load(Ordering::Relaxed) > ROOM || self.len() > ENTRIES
    }

    /// Says why nobody listens any more.
    pub(crate) fn too_much() -> String {
        format!(
            "the server has said more than {} MiB, or {ENTRIES} messages",
            ROOM >> 20
        )
    }

    fn weigh(&self, entry: &Entry) {
        if entry.way == Way::Received {
            self.received.fetch_add(entry.text.len(), Ordering::Relaxed);
        }
    }

    /// Returns a copy of an entry.
    pub(crate) fn entry(&self, number: usize) -> Entry {
        self.entries()[number].clone()
    }

    /// Says whether an event with this id has come, and this text.
    pub(crate) fn has_event(&self, id: &str, text: &str) -> bool {
        let same = |entry: &Entry| {
            let event = entry.event.as_ref();
            event.is_some_and(|event| event.id == id) && entry.text == text
        };
        self.entries().iter().any(same)
    }

    /// Returns how much was said.
    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    /// Returns all that was said in the revision, with its numbers.
    pub(crate) fn all(&self) -> Vec<(usize, Entry)> {
        let entries = self.entries();
        let numbered = entries.iter().enumerate();
        let ours = numbered.filter(|(_, entry)| !entry.beside);
        ours.map(|(number, entry)| (number, entry.clone()))
            .collect()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
