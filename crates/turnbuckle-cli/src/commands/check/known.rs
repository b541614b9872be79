//! What counts: what is broken and not known, and what is known wrongly.

use turnbuckle_check::Report;
use turnbuckle_check::baseline::{Baseline, Entry};

use super::Check;
use crate::context::Context;
use crate::failure::{Failure, Result};

impl Check {
    /// Reads the baseline, if there is one.
    pub(super) fn known(&self, context: &Context) -> Result<Option<Baseline>> {
        let Some(file) = &self.baseline else {
            return Ok(None);
        };
        let place = context.environment.cwd.join(file);
        let unusable = |why: &dyn std::fmt::Display| {
            Failure::not_asked(format!("{} is no baseline: {why}", file.display()))
        };
        let text = std::fs::read_to_string(place).map_err(|error| unusable(&error))?;
        let known = Baseline::parse(&text).map_err(|error| unusable(&error))?;
        Ok(Some(known))
    }

    /// Says by the exit code whether anything counts; what is written down as known does not.
    pub(super) fn judge(&self, report: &Report, context: &Context) -> Result {
        if let Some(file) = &self.write_baseline {
            let known = Baseline::of(report, &self.view()).to_string();
            return context.save(file, known.as_bytes());
        }
        let broken = match self.view().broken(report) {
            0 => None,
            1 => Some("a rule is broken".to_owned()),
            many => Some(format!("{many} rules are broken")),
        };
        match (broken, stale(report)) {
            (None, None) => Ok(()),
            (Some(broken), None) => Err(Failure::refused(broken)),
            (broken, Some(stale)) => {
                let message: Vec<_> = broken.into_iter().chain([stale]).collect();
                Err(Failure::refused(message.join("; "))
                    .hint("take out of the baseline what is not broken any more"))
            }
        }
    }
}

fn stale(report: &Report) -> Option<String> {
    let entries: Vec<_> = report.stale.iter().map(Entry::to_string).collect();
    match entries.as_slice() {
        [] => None,
        entries => Some(format!(
            "the baseline knows what is not broken any more:\n  {}",
            entries.join("\n  ")
        )),
    }
}
