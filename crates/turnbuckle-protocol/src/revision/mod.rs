//! What each revision does differently, one file per date.
//!
//! Everything above speaks the newest shape. Going down, a payload passes the file of every revision from the
//! newest with a handshake to the one that the peer speaks, and each takes away or replaces what came later.
//! Going up, the same files are passed the other way. A file mentions only what its revision cannot read; the
//! way through a payload is in `walk.rs`.

mod v2024_10_07;
mod v2024_11_05;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod v2026_07_28;
mod walk;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A published revision of the protocol, ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-10-07, spoken like 2024-11-05.
    V2024_10_07,
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last one with a handshake.
    V2025_11_25,
    /// 2026-07-28, the first one in which every request stands on its own.
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

    /// The newest revision with a handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision without handshake.
    pub const MODERN: Self = Self::V2026_07_28;

    /// Returns the date, as it is written on the wire.
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

/// The date is not that of a published revision.
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

/// A payload that can take the shape of any revision.
pub trait Versioned {
    /// Turns the newest shape into what a peer of `to` can read; what it cannot is dropped or replaced.
    fn lower(&mut self, to: Revision);

    /// Turns what a peer of `from` wrote into the newest shape.
    fn raise(&mut self, from: Revision);
}

/// Leads a payload down to a revision, past each one above it.
fn lower(payload: &mut impl walk::Walk, to: Revision) {
    // What was retired has no place in the newest revision, and is still needed by those above it here.
    if to == Revision::V2026_07_28 {
        return payload.walk_retired(&v2026_07_28::Lower);
    }
    payload.walk(&v2025_11_25::Lower);
    if to <= Revision::V2025_06_18 {
        payload.walk(&v2025_06_18::Lower);
    }
    if to <= Revision::V2025_03_26 {
        payload.walk(&v2025_03_26::Lower);
    }
    if to <= Revision::V2024_11_05 {
        payload.walk(&v2024_11_05::Lower);
    }
    if to <= Revision::V2024_10_07 {
        payload.walk(&v2024_10_07::Lower);
    }
}

/// Leads a payload up from a revision, past each one above it.
fn raise(payload: &mut impl walk::Walk, from: Revision) {
    if from == Revision::V2026_07_28 {
        return payload.walk_retired(&v2026_07_28::Raise);
    }
    if from <= Revision::V2024_10_07 {
        payload.walk(&v2024_10_07::Raise);
    }
    if from <= Revision::V2024_11_05 {
        payload.walk(&v2024_11_05::Raise);
    }
    if from <= Revision::V2025_03_26 {
        payload.walk(&v2025_03_26::Raise);
    }
    if from <= Revision::V2025_06_18 {
        payload.walk(&v2025_06_18::Raise);
    }
    payload.walk(&v2025_11_25::Raise);
}
