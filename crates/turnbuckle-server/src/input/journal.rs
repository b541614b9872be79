//! The journal of a call: its requests, their responses and the results of `once`.
//!
//! It is sent to the client and back as encrypted `requestState`, so any process with the key can continue the call.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::request::timestamp;

/// The state that makes the next run of a handler repeat the previous one.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Journal {
    /// Expiry, in seconds since the Unix epoch.
    #[serde(rename = "x")]
    expires: u64,
    /// Fingerprint of the tool: if the tool has changed, the call starts over.
    #[serde(rename = "f")]
    fingerprint: [u8; 16],
    #[serde(rename = "e")]
    pub(super) entries: BTreeMap<String, JournalEntry>,
}

/// One client request or one side effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    /// Digest of the request. A different request under the same key is an error.
    #[serde(rename = "d")]
    pub(super) digest: [u8; 16],
    /// `None` while the request is open.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<Box<RawValue>>,
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

    pub(super) fn matches(&self, fingerprint: [u8; 16]) -> bool {
        self.fingerprint == fingerprint
    }
}

/// Returns the digest that identifies a request.
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
    timestamp::unix_time().as_secs()
}
