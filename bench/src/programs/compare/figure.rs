//! A measurable quantity, measured in one round on one peer at a time.

use serde::{Deserialize, Serialize};
use turnbuckle_bench::{Failure, cores::Cores};

use super::peer::{Ability, Peer};

/// One quantity that is measured on every peer.
pub(crate) trait Figure {
    /// The table it belongs to: `http`, `stdio`, `streams`, …
    fn group(&self) -> &'static str;

    /// The case, in a few words: `modern 50 B, 32 connections`.
    fn case(&self) -> String;

    /// The target of ours relative to the limit.
    fn goal(&self) -> Option<Goal> {
        None
    }

    /// The abilities that a peer needs to be measured.
    fn needs(&self) -> &'static [Ability] {
        &[]
    }

    /// Returns the reason why a peer is not measured although it could be.
    fn leaves_out(&self, _: &Peer) -> Option<&'static str> {
        None
    }

    /// The number of rounds; the median counts.
    fn rounds(&self) -> usize {
        3
    }

    /// The number of rounds on peers: a narrow target needs more rounds of the two programs that it compares.
    fn rounds_of_peers(&self) -> usize {
        self.rounds()
    }

    /// Measures once. `None`: this peer does not have such a program.
    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure>;
}

/// The values of one round.
pub(crate) type Sample = Vec<(Metric, f64)>;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Metric {
    /// Requests per second.
    PerSecond,
    /// CPU time of the server per request, in microseconds.
    Cpu,
    /// Median latency, in microseconds.
    P50,
    /// Latency at the 99th percentile, in microseconds.
    P99,
    /// User-space instructions per request.
    Instructions,
    /// Allocations per request.
    Allocations,
    /// Calls of `write` and its variants per request.
    Writes,
    /// Tasks spawned on the runtime per request.
    Tasks,
    /// Memory for each of them, in bytes.
    Bytes,
    /// Wall-clock time, in milliseconds.
    Milliseconds,
    /// Wall-clock time, in seconds.
    Seconds,
    /// Memory or size as a whole, in megabytes.
    Megabytes,
    /// Packages in a build.
    Crates,
    /// Total CPU time, in seconds.
    CpuSeconds,
}

impl Metric {
    /// Returns the head of its column.
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

/// The target of ours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) metric: Metric,
    pub(crate) reach: GoalBound,
}

/// The form of a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GoalBound {
    /// At most this multiple of the limit.
    Times(f64),
    /// At least this share of the limit.
    Share(f64),
    /// At most this, whatever the limit has.
    AtMost(f64),
}

impl Goal {
    pub(crate) const fn times(metric: Metric, times: f64) -> Goal {
        let reach = GoalBound::Times(times);
        Goal { metric, reach }
    }

    pub(crate) const fn share(metric: Metric, share: f64) -> Goal {
        let reach = GoalBound::Share(share);
        Goal { metric, reach }
    }

    pub(crate) const fn at_most(metric: Metric, most: f64) -> Goal {
        let reach = GoalBound::AtMost(most);
        Goal { metric, reach }
    }

    /// Returns whether ours has reached it; `None` if the limit was not measured.
    pub(crate) fn is_reached(self, ours: f64, limit: Option<f64>) -> Option<bool> {
        Some(match self.reach {
            GoalBound::Times(times) => ours <= limit? * times,
            GoalBound::Share(share) => ours >= limit? * share,
            GoalBound::AtMost(most) => ours <= most,
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
