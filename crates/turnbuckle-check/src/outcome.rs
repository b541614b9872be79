//! What comes of a rule.

/// What a rule has found out: kept, and by which evidence; or why not.
pub(crate) type Outcome = Result<Seen, Unmet>;

/// The evidence that a rule is kept. There is no way to pass without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Entries of the tape.
    pub(crate) entries: Vec<usize>,
}

/// Why a rule did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// It is broken.
    Broken {
        /// What was seen instead of what is right.
        what: String,
        /// Entries of the tape that show it.
        entries: Vec<usize>,
    },
    /// The other side has nothing that the rule is about.
    NotApplicable(String),
    /// Nothing was seen that would tell.
    NotTested(String),
}

impl Seen {
    /// The rule is kept, as these entries show.
    pub(crate) fn at(entries: impl IntoIterator<Item = usize>) -> Outcome {
        let entries: Vec<_> = entries.into_iter().collect();
        match entries.is_empty() {
            true => Err(Unmet::NotTested("nothing was seen that would tell".into())),
            false => Ok(Self { entries }),
        }
    }
}

impl Unmet {
    /// The rule is broken, as these entries show.
    pub(crate) fn broken(
        what: impl Into<String>,
        entries: impl IntoIterator<Item = usize>,
    ) -> Self {
        Self::Broken {
            what: what.into(),
            entries: entries.into_iter().collect(),
        }
    }

    /// The other side has nothing that the rule is about.
    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }

    /// Nothing was seen that would tell.
    pub(crate) fn not_tested(why: impl Into<String>) -> Self {
        Self::NotTested(why.into())
    }

    /// Says at which of several things it was seen that a rule is broken.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::Broken { what, entries } => Self::Broken {
                what: format!("{place}: {what}"),
                entries,
            },
            other => other,
        }
    }

    /// Turns a rule that is broken here into one that could not be tested: it is about something else.
    pub(crate) fn aside(self) -> Self {
        match self {
            Self::Broken { what, .. } => Self::NotTested(what),
            other => other,
        }
    }
}
