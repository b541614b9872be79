//! The outcome of a rule.

/// The outcome of a rule: the evidence for a pass, or the reason why it did not pass.
pub(crate) type Outcome = Result<Evidence, NotPassed>;

/// The evidence for a pass. A rule cannot pass without any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Numbers of transcript entries.
    pub(crate) entries: Vec<usize>,
}

/// The reason why a rule did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotPassed {
    /// The requirement is violated.
    Violation {
        /// The observed behavior.
        observed: String,
        /// Numbers of the transcript entries that show it.
        entries: Vec<usize>,
        /// The violated requirement, if it is not the first of the rule.
        requirement: Option<&'static str>,
    },
    /// The peer does not have the feature that the rule is about.
    NotApplicable(String),
    /// The test was not conclusive.
    NotTested(String),
}

/// What a check observed in one message.
pub(crate) struct ObservedViolation {
    text: String,
    /// The violated requirement, if it is not the first of the rule.
    requirement: Option<&'static str>,
}

impl From<String> for ObservedViolation {
    fn from(text: String) -> Self {
        Self {
            text,
            requirement: None,
        }
    }
}

impl From<(&'static str, String)> for ObservedViolation {
    fn from((requirement, text): (&'static str, String)) -> Self {
        Self {
            text,
            requirement: Some(requirement),
        }
    }
}

impl ObservedViolation {
    /// Reports the violation, shown by these transcript entries.
    pub(crate) fn into_not_passed(self, entries: impl IntoIterator<Item = usize>) -> NotPassed {
        NotPassed::Violation {
            observed: self.text,
            entries: entries.into_iter().collect(),
            requirement: self.requirement,
        }
    }
}

impl Evidence {
    /// Passes with these transcript entries as evidence.
    pub(crate) fn from_entries(entries: impl IntoIterator<Item = usize>) -> Outcome {
        let entries: Vec<_> = entries.into_iter().collect();
        if entries.is_empty() {
            Err(NotPassed::NotTested(
                "no message was seen that shows it".into(),
            ))
        } else {
            Ok(Self { entries })
        }
    }
}

impl NotPassed {
    /// Reports a violation shown by these transcript entries.
    pub(crate) fn violation(
        observed: impl Into<String>,
        entries: impl IntoIterator<Item = usize>,
    ) -> Self {
        Self::Violation {
            observed: observed.into(),
            entries: entries.into_iter().collect(),
            requirement: None,
        }
    }

    /// Names the requirement that a violation breaks, for a rule that covers several.
    pub(crate) fn for_requirement(self, id: &'static str) -> Self {
        match self {
            Self::Violation {
                observed, entries, ..
            } => Self::Violation {
                observed,
                entries,
                requirement: Some(id),
            },
            other => other,
        }
    }

    /// Reports that the peer does not have the feature that the rule is about.
    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }

    /// Reports that the test was not conclusive.
    pub(crate) fn not_tested(why: impl Into<String>) -> Self {
        Self::NotTested(why.into())
    }

    /// Prefixes a violation with the item in which it was found.
    pub(crate) fn in_context(self, context: &str) -> Self {
        match self {
            Self::Violation {
                observed,
                entries,
                requirement,
            } => Self::Violation {
                observed: format!("{context}: {observed}"),
                entries,
                requirement,
            },
            other => other,
        }
    }

    /// Turns a violation into `NotTested`, for a rule that is about something else.
    pub(crate) fn into_not_tested(self) -> Self {
        match self {
            Self::Violation { observed, .. } => Self::NotTested(observed),
            other => other,
        }
    }
}
