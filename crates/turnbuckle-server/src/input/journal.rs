//! What a call has learned so far: its questions, their answers and the results of `once`.
//!
//! It travels to the client and back as sealed `requestState`, so any process with the key can continue.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::clock;

/// Everything that makes the next run of a handler take the same way.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Journal {
    /// Seconds since 1970 after which the call has to begin again.
    #[serde(rename = "x")]
    expires: u64,
    /// The tool as it was: a changed one starts over.
    #[serde(rename = "f")]
    fingerprint: [u8; 16],
    #[serde(rename = "e")]
    pub(super) entries: BTreeMap<String, Entry>,
}

/// One question or one effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Of the question; a question that reads differently on the next run is another one.
    #[serde(rename = "d")]
    pub(super) digest: [u8; 16],
    /// Open while there is none.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Box<RawValue>>,
}

impl Journal {
    pub(super) fn new(fingerprint: [u8; 16]) -> Self {
        Self {
            fingerprint,
            ..Self::default()
        }
    }

    pub(super) fn expire_in(&mut self, time: Duration) {
        self.expires = now().saturating_add(time.as_secs());
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expires < now()
    }

    pub(super) fn is_of(&self, fingerprint: [u8; 16]) -> bool {
        self.fingerprint == fingerprint
    }
}

/// What makes two questions the same.
pub(super) fn digest(method: &str, params: &[u8]) -> [u8; 16] {
    let hash = Sha256::new()
        .chain_update(method)
        .chain_update([0])
        .chain_update(params)
        .finalize();
    let mut short = [0; 16];
    short.copy_from_slice(&hash[..16]);
    short
}

fn now() -> u64 {
    clock::since_1970().as_secs()
}
