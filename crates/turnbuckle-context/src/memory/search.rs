//! Finding what is remembered.

use std::time::Duration;

use super::{Item, Kind};
use crate::{ContextError, Database};

/// A question to what is remembered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// What kind of thing is looked for.
    pub kind: Kind,
    /// The question: a sentence, a name, an error message.
    pub text: String,
    /// How many at most.
    pub limit: usize,
    /// Only what was saved on this branch.
    pub branch: Option<String>,
    /// Milliseconds since 1970, to know how old things are.
    pub now: i64,
    /// How fast things lose weight.
    pub half_life: HalfLife,
    /// Nothing below this score, from 0 to 1.
    pub least_score: f64,
    /// The question as an embedding, if there is a provider.
    pub dense: Option<Dense>,
}

/// A question as an embedding.
#[derive(Clone, Debug)]
pub struct Dense {
    /// The model that made it.
    pub model: String,
    /// The embedding, of length 1.
    pub vector: Vec<f32>,
}

/// How fast things lose weight by their age: half of what they can lose after each half-life, and never all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfLife {
    /// For checkpoints.
    pub checkpoint: Duration,
    /// For remediations.
    pub remediation: Duration,
    /// For skills.
    pub skill: Duration,
}

/// Something that answers the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// What was found.
    pub item: Item,
    /// How well it answers, from 0 to 1.
    pub score: f64,
    /// The place in the list of databases where it was found.
    pub source: usize,
}

impl MemoryQuery {
    /// Asks for ten things of a kind, as of now.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            limit: 10,
            branch: None,
            now: crate::database::now(),
            half_life: HalfLife::default(),
            least_score: 0.0,
            dense: None,
        }
    }
}

impl Default for HalfLife {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
        Self {
            checkpoint: days(30),
            remediation: days(365),
            skill: days(730),
        }
    }
}

/// Finds what answers a question, best first; with equal scores the newest first.
///
/// Several databases are searched as if they were one.
pub fn search(databases: &[&Database], query: &MemoryQuery) -> Result<Vec<Hit>, ContextError> {
    let _ = (databases, query);
    Err(ContextError::refused("not built yet"))
}
