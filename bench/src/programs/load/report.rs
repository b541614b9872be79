//! The figures and failures of a run.

use std::{fmt::Write as _, time::Duration};

use serde_json::json;
use turnbuckle_bench::process::Memory;

use super::plan::Plan;

#[derive(Debug)]
pub(crate) struct Report {
    figures: Vec<(String, f64)>,
    /// Everything that makes the run fail.
    pub(crate) faults: Vec<String>,
    most_memory: u64,
    peak: usize,
}

impl Report {
    pub(crate) fn new(plan: &Plan) -> Report {
        let figures = vec![
            ("calls held at once".to_owned(), 0.0),
            ("of them over HTTP/2".to_owned(), plan.multiplexed as f64),
            ("idle sessions".to_owned(), plan.sessions as f64),
        ];
        Report {
            figures,
            faults: Vec::new(),
            most_memory: plan.memory,
            peak: 0,
        }
    }

    pub(crate) fn figure(&mut self, name: impl Into<String>, value: f64) {
        self.figures.push((name.into(), value));
    }

    pub(crate) fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(what.into());
    }

    /// Records how many calls the server reports as running.
    pub(crate) fn peak(&mut self, running: usize) {
        self.peak = self.peak.max(running);
        self.figures[0].1 = self.peak as f64;
    }

    /// Records latencies, which are sorted, in milliseconds.
    pub(crate) fn latencies(&mut self, what: &str, latencies: &[Duration]) {
        let last = latencies.len() - 1;
        for (name, at) in [("p50", last / 2), ("p99", last * 99 / 100), ("max", last)] {
            self.figure(
                format!("{what}, {name} ms"),
                latencies[at].as_secs_f64() * 1e3,
            );
        }
    }

    /// Records the server's memory and checks its peak.
    pub(crate) fn memory(&mut self, before: Memory, after: Memory) {
        for (name, bytes) in [
            ("at the start", before.now),
            ("at the end", after.now),
            ("at most", after.peak),
        ] {
            self.figure(format!("memory {name}, MiB"), mebibytes(bytes));
        }
        if after.peak > self.most_memory {
            let (peak, bound) = (mebibytes(after.peak), mebibytes(self.most_memory));
            self.fault(format!(
                "the server took {peak:.0} MiB, allowed are {bound:.0}"
            ));
        }
    }

    pub(crate) fn json(&self) -> String {
        let figures: serde_json::Map<_, _> = self
            .figures
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        json!({ "figures": figures, "faults": self.faults }).to_string()
    }

    pub(crate) fn table(&self) -> String {
        let mut table = String::new();
        for (name, value) in &self.figures {
            let digits = if *value < 100.0 && value.fract() != 0.0 {
                2
            } else {
                0
            };
            let _ = writeln!(table, "{name:<40} {value:>12.digits$}");
        }
        for fault in &self.faults {
            let _ = writeln!(table, "wrong: {fault}");
        }
        table
            + if self.faults.is_empty() {
                "every response was right"
            } else {
                "failed"
            }
    }
}

/// Returns the memory that each of `count` things added to the server.
pub(crate) fn bytes_each(before: Memory, after: Memory, count: usize) -> f64 {
    after.now.saturating_sub(before.now) as f64 / count.max(1) as f64
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
