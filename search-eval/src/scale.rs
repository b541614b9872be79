//! Scale tests of the context server: a repository of many files, a memory of many checkpoints.
//!
//! Everything is made up, and the same in every run. What is judged is memory and time of the processor; time on the
//! wall belongs to the machine, and is only printed.

mod checkpoints;
mod diary;
mod files;
mod language;
mod random;
mod repository;
mod usage;
mod vocabulary;

use crate::failure::Failure;

/// Usage of the command.
pub(crate) const USAGE: &str = "\
scale files [COUNT]        indexes a repository of so many files (50,000), then looks for changes
scale checkpoints [COUNT]  searches in a memory of so many checkpoints (100,000)";

/// Runs a scale test, prints the figures and returns whether they are within their limits.
pub(crate) fn measure(words: &[String]) -> Result<bool, Failure> {
    let (what, count) = match words {
        [what] => (what.as_str(), None),
        [what, count] => (what.as_str(), Some(count.parse()?)),
        _ => return Err(Failure::new(USAGE)),
    };
    match what {
        "files" => files::measure(count.unwrap_or(50_000)),
        "checkpoints" => checkpoints::measure(count.unwrap_or(100_000)),
        _ => Err(Failure::new(USAGE)),
    }
}

/// Prints what was too much, if it was.
fn within(name: &str, used: f64, limit: f64, unit: &str) -> bool {
    let is_within = used <= limit;
    if !is_within {
        println!("TOO MUCH: {name} is {used:.1} {unit}, and may be {limit:.1} {unit}");
    }
    is_within
}

/// Bytes as megabytes.
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
    fn little_stays_within_its_limits() {
        assert!(is_within(["files", "60"]));
        assert!(is_within(["checkpoints", "200"]));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert!(measure(&[]).is_err());
        assert!(measure(&["files".to_owned(), "many".to_owned()]).is_err());
    }
}
