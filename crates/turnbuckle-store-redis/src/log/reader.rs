//! Reads the logs and the inbox of this process.

use std::time::Duration;

use turnbuckle_store::{InstanceId, Position, StoreError, SubscriberLagged};

use super::{ReaderParts, pause_after};
use crate::{
    connection::Connection,
    encoding::{BusEntry, DecodeError, decode_change, decode_control, decode_inbox_entry},
    keys::{Keys, LogKeys},
    script::Script,
};

static START: Script = Script::new(include_str!("../scripts/log_start.lua"));
static CHECK: Script = Script::new(include_str!("../scripts/log_check.lua"));
static ADVANCE: Script = Script::new(include_str!("../scripts/log_advance.lua"));

/// How long one read waits for entries.
pub(crate) const BLOCK: Duration = Duration::from_secs(1);

/// The most entries of one log in one reply.
const MAX_ENTRIES: usize = 1_000;

/// The newest positions when this process connected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogStart {
    pub(crate) bus: u64,
    pub(crate) control: u64,
}

impl LogStart {
    /// Reads the positions, and begins the logs if they are new.
    pub(crate) async fn load(connection: &Connection, keys: &Keys) -> Result<Self, StoreError> {
        let start = async |log: LogKeys| connection.script(&START, &[&log.counter], &[]).await;
        Ok(Self {
            bus: start(keys.bus()).await?,
            control: start(keys.control()).await?,
        })
    }
}

/// Reads until the store is dropped.
pub(crate) struct LogReader {
    parts: ReaderParts,
    bus: Cursor,
    control: Cursor,
    inbox: String,
    /// The id of the last message in the inbox.
    last_message: String,
    /// The connection on which the cursors are known to be right.
    connection: Option<u64>,
}

/// How far a log was read.
struct Cursor {
    keys: LogKeys,
    last: u64,
    /// The value of the last entry. It is unique, so it tells whether Redis still has the same log.
    value: Option<Vec<u8>>,
}

/// An entry of a stream: its id and fields.
pub(crate) type StreamEntry = (String, Vec<Vec<u8>>);

/// One stream of a reply: its key and its entries.
type StreamReply = (String, Vec<StreamEntry>);

impl LogReader {
    pub(crate) fn new(parts: ReaderParts, start: LogStart) -> Self {
        let cursor = |keys, last| Cursor {
            keys,
            last,
            value: None,
        };
        Self {
            bus: cursor(parts.keys.bus(), start.bus),
            control: cursor(parts.keys.control(), start.control),
            inbox: parts.keys.inbox(&parts.process),
            last_message: "0-0".to_owned(),
            connection: None,
            parts,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut failures = 0;
        loop {
            match self.read().await {
                Ok(()) => failures = 0,
                Err(error) => {
                    if failures == 0 {
                        tracing::warn!(%error, "cannot read changes from Redis; trying again");
                    }
                    pause_after(failures).await;
                    failures += 1;
                }
            }
        }
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        let connection = self.parts.connection.clone();
        connection.open().await.map_err(StoreError::unavailable)?;
        if connection.number() != self.connection {
            let number = connection.number();
            self.check_cursors(&connection).await?;
            self.connection = number;
        }
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(MAX_ENTRIES);
        // The remainder of a second fits.
        read.arg("BLOCK").arg(BLOCK.as_millis() as u64);
        read.arg("STREAMS");
        read.arg(&self.control.keys.stream)
            .arg(&self.bus.keys.stream)
            .arg(&self.inbox);
        read.arg(entry_id(self.control.last))
            .arg(entry_id(self.bus.last))
            .arg(&self.last_message);
        let reply: Option<Vec<StreamReply>> = connection.run(&read).await?;
        if connection.number() != self.connection {
            // The reply may come from another server; the cursors are checked first.
            return Ok(());
        }
        let mut streams = reply.unwrap_or_default();
        // A message is delivered before the changes that were published later.
        streams.sort_by_key(|(key, _)| *key != self.control.keys.stream);
        for (key, entries) in streams {
            for (id, fields) in entries {
                let value = fields.into_iter().nth(1).unwrap_or_default();
                if key == self.control.keys.stream {
                    self.read_control(&id, value);
                } else if key == self.bus.keys.stream {
                    self.read_change(&id, value);
                } else {
                    self.read_message(id, &value);
                }
            }
        }
        Ok(())
    }

    /// Finds out whether the logs go on where the last connection ended.
    async fn check_cursors(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let is_first = self.connection.is_none();
        let lagged = Err(SubscriberLagged { missed: 1 });
        let channels = &self.parts.channels;
        let mut is_lost = false;
        if !self.bus.is_continued(connection).await? {
            self.bus.restart(connection).await?;
            channels.set_position(self.bus.last);
            // Fails only without subscribers.
            let _ = channels.changes.send(lagged.clone());
            is_lost = true;
        }
        if !self.control.is_continued(connection).await? {
            self.control.restart(connection).await?;
            let _ = channels.control.send(Err(SubscriberLagged { missed: 1 }));
            is_lost = true;
        }
        if is_lost && !is_first {
            tracing::warn!("entries of the logs in Redis were lost; subscribers get an error");
            channels.lag_inboxes();
        }
        Ok(())
    }

    fn read_change(&mut self, id: &str, value: Vec<u8>) {
        let channels = self.parts.channels.clone();
        let missed = self.bus.advance(id);
        let entry = self.open(&value, &self.bus.keys.stream, decode_change);
        self.bus.value = Some(value);
        channels.set_position(self.bus.last);
        let position = Position::new(self.bus.last);
        let changes = &channels.changes;
        // Sending fails only without subscribers.
        if missed > 0 {
            let _ = changes.send(Err(SubscriberLagged { missed }));
        }
        match entry {
            Some(BusEntry::Change(change)) => {
                let _ = changes.send(Ok((position, change)));
            }
            Some(BusEntry::Missed) => {
                let _ = changes.send(Err(SubscriberLagged { missed: 1 }));
            }
            Some(BusEntry::Unknown) | None => {}
        }
    }

    fn read_control(&mut self, id: &str, value: Vec<u8>) {
        let missed = self.control.advance(id);
        let message = self.open(&value, &self.control.keys.stream, decode_control);
        self.control.value = Some(value);
        let control = &self.parts.channels.control;
        // Sending fails only without subscribers.
        if missed > 0 {
            let _ = control.send(Err(SubscriberLagged { missed }));
        }
        if let Some(Some(message)) = message {
            let _ = control.send(Ok(message));
        }
    }

    fn read_message(&mut self, id: String, value: &[u8]) {
        self.last_message = id;
        // The receiver is in front of the sealed message, because the script that appends it looks it up.
        let Some(split) = value.iter().position(|byte| *byte == b'|') else {
            return;
        };
        let (receiver, sealed) = (&value[..split], &value[split + 1..]);
        let Some(receiver) = str::from_utf8(receiver).ok().and_then(parse_instance) else {
            return;
        };
        let name = self.parts.keys.messages_to(receiver.slot);
        let entry = self.open(sealed, &name, |plain| decode_inbox_entry(receiver, plain));
        if let Some(Some(entry)) = entry {
            let channels = &self.parts.channels;
            channels.deliver(&entry.receiver, entry.number, entry.message);
        }
    }

    /// Opens and decodes an entry. One that cannot be read is skipped: another process may have a later version.
    fn open<T>(
        &self,
        value: &[u8],
        name: &str,
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Option<T> {
        let plain = self.parts.sealer.open(value, name);
        let decoded = plain.ok().map(|plain| decode(&plain));
        if let Some(Ok(decoded)) = decoded {
            return Some(decoded);
        }
        tracing::warn!(stream = name, "an entry in Redis cannot be read");
        None
    }
}

impl Cursor {
    /// Returns whether the log has all entries after the cursor.
    async fn is_continued(&self, connection: &Connection) -> Result<bool, StoreError> {
        let (last, next) = (entry_id(self.last), entry_id(self.last + 1));
        let keys = [&*self.keys.stream, &*self.keys.counter];
        let arguments = [(&last).into(), (&next).into()];
        let (newest, value, next): (String, Vec<u8>, Vec<u8>) =
            connection.script(&CHECK, &keys, &arguments).await?;
        let newest = newest.parse().unwrap_or(0);
        let known = self.value.as_ref();
        let is_same = known.is_none_or(|known| *known == value);
        // The entry at the cursor may have been trimmed, if there are later ones.
        let is_trimmed = value.is_empty() && !next.is_empty();
        Ok(match self.last {
            last if last == newest => is_same,
            last if last < newest => (is_same || is_trimmed) && !next.is_empty(),
            _ => false,
        })
    }

    /// Goes on behind the newest entry.
    async fn restart(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let keys = [&*self.keys.counter];
        self.last = connection.script(&ADVANCE, &keys, &[]).await?;
        self.value = None;
        Ok(())
    }

    /// Moves to an entry and returns how many entries are missing before it.
    fn advance(&mut self, id: &str) -> u64 {
        let number = id.split('-').next().and_then(|text| text.parse().ok());
        let position = number.unwrap_or(self.last + 1);
        let missed = position.saturating_sub(self.last + 1);
        self.last = position;
        missed
    }
}

/// The id of a position in its stream.
pub(crate) fn entry_id(position: u64) -> String {
    format!("{position}-0")
}

/// Parses the text form of an instance.
pub(crate) fn parse_instance(text: &str) -> Option<InstanceId> {
    let (slot, nonce) = text.split_once('-')?;
    Some(InstanceId {
        slot: turnbuckle_store::InstanceSlot::new(slot.parse().ok()?)?,
        nonce: u64::from_str_radix(nonce, 16).ok()?,
    })
}
