//! What can be measured: a figure is asked for one round on one peer at a time.

use serde::{Deserialize, Serialize};
use turnbuckle_bench::{Failure, place::Places};

use crate::peer::{Ability, Peer};

/// One thing that is measured on every peer.
pub(crate) trait Figure {
    /// Which table it belongs to: `http`, `stdio`, `streams`, …
    fn group(&self) -> &'static str;

    /// What exactly, in a few words: `modern 50 B, 32 connections`.
    fn case(&self) -> String;

    /// What ours is to reach beside the limit.
    fn goal(&self) -> Option<Goal> {
        None
    }

    /// What a peer must be able to do to be measured.
    fn needs(&self) -> &'static [Ability] {
        &[]
    }

    /// Says why a peer is not measured although it could be.
    fn leaves_out(&self, _: &Peer) -> Option<&'static str> {
        None
    }

    /// How often it is measured; the median counts.
    fn rounds(&self) -> usize {
        3
    }

    /// How often it is measured on peers: a narrow goal asks for more turns of the two that it compares.
    fn rounds_of_peers(&self) -> usize {
        self.rounds()
    }

    /// Measures once. `None`: this peer has no such form.
    fn round(&self, peer: &Peer, places: Places) -> Result<Option<Sample>, Failure>;
}

/// What one round has shown.
pub(crate) type Sample = Vec<(Metric, f64)>;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Metric {
    /// Requests answered per second.
    PerSecond,
    /// Time of the server's processor per request, in microseconds.
    Cpu,
    /// Latency that half of the requests stay below, in microseconds.
    P50,
    /// Latency that 99 of 100 requests stay below, in microseconds.
    P99,
    /// User-space instructions per request.
    Instructions,
    /// Allocations per request.
    Allocations,
    /// Calls of `write` and its kin per request.
    Writes,
    /// Tasks that the runtime was given, per request.
    Tasks,
    /// Memory for each of them, in bytes.
    Bytes,
    /// Time on the wall, in milliseconds.
    Milliseconds,
    /// Time on the wall, in seconds.
    Seconds,
    /// Memory or size as a whole, in megabytes.
    Megabytes,
    /// Packages in a build.
    Crates,
    /// Time of the processor as a whole, in seconds.
    CpuSeconds,
}

impl Metric {
    /// The head of its column.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Metric::PerSecond => "per second",
            Metric::Cpu => "CPU µs",
            Metric::P50 => "p50 µs",
            Metric::P99 => "p99 µs",
            Metric::Instructions => "instructions",
            Metric::Allocations => "allocations",
            Metric::Writes => "writes",
            Metric::Tasks => "tasks",
            Metric::Bytes => "bytes each",
            Metric::Milliseconds => "ms",
            Metric::Seconds => "s",
            Metric::Megabytes => "MB",
            Metric::Crates => "crates",
            Metric::CpuSeconds => "CPU s",
        }
    }
}

/// What ours is to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) metric: Metric,
    pub(crate) reach: Reach,
}

/// How a goal is put.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reach {
    /// At most so many times what the limit takes.
    Times(f64),
    /// At least this share of what the limit does.
    Share(f64),
    /// At most this, whatever the limit takes.
    AtMost(f64),
}

impl Goal {
    pub(crate) const fn times(metric: Metric, times: f64) -> Goal {
        let reach = Reach::Times(times);
        Goal { metric, reach }
    }

    pub(crate) const fn share(metric: Metric, share: f64) -> Goal {
        let reach = Reach::Share(share);
        Goal { metric, reach }
    }

    pub(crate) const fn at_most(metric: Metric, most: f64) -> Goal {
        let reach = Reach::AtMost(most);
        Goal { metric, reach }
    }

    /// Whether ours has reached it; `None` where the limit was not measured.
    pub(crate) fn is_reached(self, ours: f64, limit: Option<f64>) -> Option<bool> {
        Some(match self.reach {
            Reach::Times(times) => ours <= limit? * times,
            Reach::Share(share) => ours >= limit? * share,
            Reach::AtMost(most) => ours <= most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_compares_in_its_own_direction() {
        let times = Goal::times(Metric::Cpu, 1.2);
        let share = Goal::share(Metric::PerSecond, 0.8);
        let most = Goal::at_most(Metric::Bytes, 1024.0);

        assert_eq!(times.is_reached(12.0, Some(10.0)), Some(true));
        assert_eq!(times.is_reached(12.1, Some(10.0)), Some(false));
        assert_eq!(times.is_reached(12.0, None), None);
        assert_eq!(share.is_reached(8.0, Some(10.0)), Some(true));
        assert_eq!(share.is_reached(7.9, Some(10.0)), Some(false));
        assert_eq!(most.is_reached(1024.0, None), Some(true));
        assert_eq!(most.is_reached(1025.0, Some(1.0)), Some(false));
    }
}
