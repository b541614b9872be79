//! What could not be told, and why: the same reasons together.

use super::{Grade, Report, Verdict};

/// Why nothing could be told about some rules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reason<'a> {
    /// Why.
    pub why: &'a str,
    /// The rules that it is about, in the order of the catalogue.
    pub rules: Vec<&'static str>,
}

impl Report {
    /// Returns why rules do not apply, or were not tested; the reason of most rules first.
    pub fn untold(&self, grade: Grade) -> Vec<Reason<'_>> {
        let mut reasons: Vec<Reason<'_>> = Vec::new();
        for (_, ruling) in self.rulings().filter(|(_, ruling)| ruling.grade() == grade) {
            let (Verdict::NotApplicable(why) | Verdict::NotTested(why)) = &ruling.verdict else {
                continue;
            };
            let id = ruling.rule.id;
            match reasons.iter_mut().find(|reason| reason.why == why) {
                Some(reason) if reason.rules.contains(&id) => {}
                Some(reason) => reason.rules.push(id),
                None => reasons.push(Reason {
                    why,
                    rules: vec![id],
                }),
            }
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.rules.len()));
        reasons
    }
}
