//! The differences of each revision, one file per date.
//!
//! All other code uses the newest form. To downgrade, a payload passes the file of every revision from the newest
//! one to the revision of the peer, and each removes or replaces what was added later. To upgrade, the same files are
//! passed in reverse. A file contains only the items that its revision cannot read; `adapter.rs` visits the items of
//! each payload.
//!
//! A new revision is a variant of [`Revision`], its file here, and a row in the tables of `lifecycle` in server and
//! client. No other code names a date: it asks for properties, such as [`Revision::is_stateless`].

mod adapter;
mod v2024_10_07;
mod v2024_11_05;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod v2026_07_28;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A published revision of the protocol, ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-10-07, handled like 2024-11-05.
    V2024_10_07,
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last revision with `initialize`.
    V2025_11_25,
    /// 2026-07-28, the first stateless revision.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 6] = [
        Self::V2024_10_07,
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision with `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The newest revision, which is stateless.
    pub const MODERN: Self = Self::ALL[Self::ALL.len() - 1];

    /// The stateless revisions, oldest first.
    pub const STATELESS: &[Self] = Self::ALL.split_at(Self::LATEST_LEGACY.index() + 1).1;

    /// Returns the position in [`ALL`](Self::ALL), for tables with one entry per revision.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns whether every request carries its revision and the identity of the client; otherwise a session starts
    /// with `initialize`.
    pub const fn is_stateless(self) -> bool {
        self.index() > Self::LATEST_LEGACY.index()
    }

    /// Returns the stateless revision with this date.
    pub fn stateless_from_name(date: &str) -> Option<Self> {
        let mut newest_first = Self::STATELESS.iter().rev().copied();
        newest_first.find(|revision| revision.as_str() == date)
    }

    /// Returns the date, as written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_10_07 => "2024-10-07",
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }
}

/// The date of the newest revision, for requests that are sent before a revision is negotiated.
pub const NEWEST_DATE: &str = Revision::MODERN.as_str();

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(date: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == date)
            .ok_or(UnknownRevision)
    }
}

/// The date is not a published revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision")]
pub struct UnknownRevision;

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let date = std::borrow::Cow::<str>::deserialize(deserializer)?;
        date.parse().map_err(D::Error::custom)
    }
}

/// A payload that can be converted to and from the form of any revision.
pub trait VersionedPayload {
    /// Converts the newest form to one that a peer of `to` can read. Unsupported members are dropped or replaced.
    fn downgrade_to(&mut self, to: Revision);

    /// Converts the form that a peer of `from` sent to the newest form.
    fn upgrade_from(&mut self, from: Revision);
}

/// Downgrades a payload step by step through each newer revision.
fn downgrade(payload: &mut impl adapter::AdaptTo, to: Revision) {
    if to.is_stateless() {
        // Only sessions have these members, so the revisions below still need them.
        return payload.adapt_retired(&v2026_07_28::WithoutSessionMembers);
    }
    payload.adapt(&v2025_11_25::DowngradeTo2025_11_25);
    if to <= Revision::V2025_06_18 {
        payload.adapt(&v2025_06_18::DowngradeTo2025_06_18);
    }
    if to <= Revision::V2025_03_26 {
        payload.adapt(&v2025_03_26::DowngradeTo2025_03_26);
    }
    if to <= Revision::V2024_11_05 {
        payload.adapt(&v2024_11_05::DowngradeTo2024_11_05);
    }
    if to <= Revision::V2024_10_07 {
        payload.adapt(&v2024_10_07::DowngradeTo2024_10_07);
    }
}

/// Upgrades a payload step by step through each newer revision.
fn upgrade(payload: &mut impl adapter::AdaptTo, from: Revision) {
    if from.is_stateless() {
        return payload.adapt_retired(&v2026_07_28::WithoutSessionMembers);
    }
    if from <= Revision::V2024_10_07 {
        payload.adapt(&v2024_10_07::UpgradeFrom2024_10_07);
    }
    if from <= Revision::V2024_11_05 {
        payload.adapt(&v2024_11_05::UpgradeFrom2024_11_05);
    }
    if from <= Revision::V2025_03_26 {
        payload.adapt(&v2025_03_26::UpgradeFrom2025_03_26);
    }
    if from <= Revision::V2025_06_18 {
        payload.adapt(&v2025_06_18::UpgradeFrom2025_06_18);
    }
    payload.adapt(&v2025_11_25::UpgradeFrom2025_11_25);
}
