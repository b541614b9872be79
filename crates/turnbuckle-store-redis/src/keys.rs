//! The names of keys in Redis.

use std::{fmt::Display, sync::Arc};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use turnbuckle_store::InstanceSlot;

/// Builds the names of all keys. The part in braces decides about the node of a cluster, so the keys of one script share it.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: Arc<str>,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.into(),
        }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    fn key(&self, rest: impl Display) -> String {
        format!("{}:{rest}", self.prefix)
    }

    /// A sealed value that tells whether the state keys are right.
    pub(crate) fn check(&self) -> String {
        self.key("check")
    }

    pub(crate) fn request_state(&self, id: impl Display) -> String {
        self.key(format_args!("{{j:{id}}}"))
    }

    pub(crate) fn claim(&self, key: &str) -> String {
        self.key(format_args!("{{k:{}}}", hash(key)))
    }

    /// The index of the entries of one kind, for limits: expiry times, entries, and totals.
    pub(crate) fn index(&self, kind: &str) -> [String; 3] {
        ["x", "e", "t"].map(|part| self.key(format_args!("{{q:{kind}}}:{part}")))
    }

    /// The record of a session.
    pub(crate) fn session(&self, id: impl Display) -> String {
        self.key(format_args!("{{{id}}}"))
    }

    /// The index of sessions: deadlines, entries, totals, sessions of owners, bytes of owners, and expired sessions to report.
    pub(crate) fn session_index(&self) -> [String; 6] {
        ["x", "e", "t", "n", "b", "r"].map(|part| self.key(format_args!("{{s}}:{part}")))
    }

    /// The prefix of the sessions of an owner.
    pub(crate) fn sessions_of_owners(&self) -> String {
        self.key("{s}:o:")
    }

    /// The result of a script that must be reported once, for a caller that did not get it.
    pub(crate) fn expired_sessions(&self, request: &str) -> String {
        self.key(format_args!("{{s}}:q:{request}"))
    }

    pub(crate) fn task(&self, id: impl Display) -> String {
        self.key(format_args!("{{t:{id}}}"))
    }

    /// The index of tasks: expiry times, entries, totals, and finished tasks of shared owners.
    pub(crate) fn task_index(&self) -> [String; 4] {
        ["x", "e", "t", "s"].map(|part| self.key(format_args!("{{t}}:{part}")))
    }

    /// The prefixes of the tasks of an owner, of its finished tasks, and of the unfinished tasks of a runner.
    pub(crate) fn task_lists(&self) -> [String; 3] {
        ["o", "f", "r"].map(|part| self.key(format_args!("{{t}}:{part}:")))
    }

    /// A stream of a session.
    pub(crate) fn stream(&self, session: impl Display, stream: impl Display) -> String {
        self.key(format_args!("{{{session}}}:{stream}"))
    }

    /// The streams of a session.
    pub(crate) fn streams(&self, session: impl Display) -> String {
        self.key(format_args!("{{{session}}}:e"))
    }

    /// The stream of changes and its counter.
    pub(crate) fn bus(&self) -> LogKeys {
        self.log("")
    }

    /// The stream of control messages and its counter. It is in the slot of the bus, so that one command reads both.
    pub(crate) fn control(&self) -> LogKeys {
        self.log(":c")
    }

    fn log(&self, part: &str) -> LogKeys {
        LogKeys {
            stream: self.key(format_args!("{{bus}}{part}")),
            counter: self.key(format_args!("{{bus}}{part}:n")),
        }
    }

    /// The prefix of the digests of published lists.
    pub(crate) fn list_digests(&self) -> String {
        self.key("{bus}:d:")
    }

    /// The last batch that a process has published.
    pub(crate) fn publisher(&self, process: &str) -> String {
        self.key(format_args!("{{bus}}:w:{process}"))
    }

    /// The instances with the ends of their leases, the holders of the slots, and their inboxes.
    pub(crate) fn instances(&self) -> [String; 3] {
        ["i", "i:slots", "i:inboxes"].map(|part| self.key(format_args!("{{bus}}:{part}")))
    }

    /// The messages to the instances of a process.
    pub(crate) fn inbox(&self, process: &str) -> String {
        self.key(format_args!("{{bus}}:in:{process}"))
    }

    /// The name under which messages to the holder of a slot are sealed. The sender does not know the inbox.
    pub(crate) fn messages_to(&self, slot: InstanceSlot) -> String {
        self.key(format_args!("{{bus}}:in:slot {}", slot.number()))
    }

    /// The result of a script that must be reported once, for a caller that did not get it.
    pub(crate) fn expired_instances(&self, request: &str) -> String {
        self.key(format_args!("{{bus}}:r:{request}"))
    }
}

/// The keys of a log.
#[derive(Clone, Debug)]
pub(crate) struct LogKeys {
    pub(crate) stream: String,
    pub(crate) counter: String,
}

/// Returns a short text that differs for different texts.
pub(crate) fn hash(text: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text))
}

/// Returns a random text for names of this process.
pub(crate) fn random_name() -> String {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).expect("random bytes are available");
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
