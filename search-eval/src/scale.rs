//! Scale tests of the context server: a repository of many files, a memory of many checkpoints.
//!
//! All data is generated and equal in every run. Memory and CPU time have limits; wall time depends on the machine and is only
//! printed.

mod checkpoint_generator;
mod checkpoints;
mod files;
mod language;
mod random;
mod repository;
mod usage;
mod vocabulary;

use crate::error::EvalError;

/// Usage of the command.
pub(crate) const USAGE: &str = "\
scale files [COUNT]        indexes a repository of COUNT files (50,000), then refreshes the index
scale checkpoints [COUNT]  searches in COUNT checkpoints (100,000)";

/// Runs a scale test, prints the figures and returns whether they are within their limits.
pub(crate) fn measure(words: &[String]) -> Result<bool, EvalError> {
    let (what, count) = match words {
        [what] => (what.as_str(), None),
        [what, count] => (what.as_str(), Some(count.parse()?)),
        _ => return Err(EvalError::new(USAGE)),
    };
    match what {
        "files" => files::measure(count.unwrap_or(50_000)),
        "checkpoints" => checkpoints::measure(count.unwrap_or(100_000)),
        _ => Err(EvalError::new(USAGE)),
    }
}

/// Returns whether a figure is within its limit, and prints a line if not.
fn within(name: &str, used: f64, limit: f64, unit: &str) -> bool {
    let is_within = used <= limit;
    if !is_within {
        println!("LIMIT EXCEEDED: {name} is {used:.1} {unit}, at most {limit:.1} {unit}");
    }
    is_within
}

/// Converts bytes to megabytes.
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_within(words: [&str; 2]) -> bool {
        measure(&words.map(str::to_owned)).unwrap()
    }

    #[test]
    fn a_small_scale_test_is_within_its_limits() {
        assert!(is_within(["files", "60"]));
        assert!(is_within(["checkpoints", "200"]));
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        assert!(measure(&[]).is_err());
        assert!(measure(&["files".to_owned(), "many".to_owned()]).is_err());
    }
}
