//! A rule: the requirements that it covers, its texts and its check.

use std::pin::Pin;

use serde::Serialize;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_spec_coverage::{Requirement, table};

use crate::{
    engine::{check_context::CheckContext, outcome::Outcome, transcript::Transcript},
    mock_server::{Scenario, ScenarioRuns},
};

/// One requirement of the specification that a server or a client is tested against.
#[derive(Debug)]
#[must_use = "a rule does nothing until it is in the catalog"]
pub struct Rule {
    /// The id, for example `base.unknown-method`. Ids are stable.
    pub id: &'static str,
    /// The side that the rule applies to.
    pub role: Role,
    /// The area that reports list the rule under.
    pub area: Area,
    /// The ids of the requirements that the rule covers; empty for advice. A violation breaks the first that applies in
    /// the revision, unless the check names another.
    pub requirement_ids: &'static [&'static str],
    /// The requirement, in one sentence.
    pub requirement: &'static str,
    /// How to repair a violation, as an imperative sentence.
    pub hint: &'static str,
    /// The transports on which the rule can be observed.
    pub transports: Transports,
    /// Reports a violation as a warning even if a requirement says MUST, because that reading is
    /// not backed by a key word.
    pub warn_only: bool,
    /// Reports a violation as a warning although no requirement is behind it.
    pub warns: bool,
    pub(crate) check: Check,
}

/// The way in which a rule is tested.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    /// No check is set yet.
    Unset,
    /// Sends something and looks at the response.
    Active(for<'a> fn(&'a CheckContext) -> CheckFuture<'a>),
    /// Reads the whole transcript after all active rules have run.
    Passive(fn(&CheckContext, &Transcript) -> Outcome),
    /// Reads what a client sent to the mock server, in these scenarios among others.
    Scenarios(&'static [Scenario], fn(&ScenarioRuns) -> Outcome),
}

/// The future of an active check.
pub(crate) type CheckFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// The side that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The server.
    Server,
    /// The client.
    Client,
}

/// The transports on which a rule can be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transports {
    /// All transports.
    Any,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    HttpSse,
    /// Newline-delimited JSON: stdio and sockets.
    #[serde(rename = "lines")]
    Ndjson,
    /// The standard streams of a process.
    Stdio,
}

/// The requirement level (RFC 2119) of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequirementLevel {
    /// A recommendation of the checker.
    Advice,
    /// SHOULD.
    Warn,
    /// MUST.
    Fail,
}

macro_rules! areas {
    ($($name:ident $text:literal),* $(,)?) => {
        /// The subject of a rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Area { $(#[doc = $text] $name),* }

        impl Area {
            /// All areas, in the order of reports.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the display name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// Returns the one-word name for the command line.
            pub fn id(self) -> String {
                match self { $(Self::$name => stringify!($name)),* }.to_lowercase()
            }
        }
    };
}

areas! {
    Base "base protocol",
    Shapes "message shapes",
    Lifecycle "lifecycle",
    Eras "eras",
    Stdio "stdio",
    Http "HTTP",
    Sessions "sessions",
    Streams "streams",
    Origins "Origin and Host",
    Tools "tools",
    Resources "resources",
    Prompts "prompts",
    Completion "completion",
    Logging "logging",
    Progress "progress",
    Cancellation "cancellation",
    Pagination "pagination",
    Subscriptions "subscriptions",
    Input "input from the user",
    Roots "roots",
    Sampling "sampling",
    Elicitation "elicitation",
    Tasks "tasks",
    Caching "caching",
    Authorization "authorization",
    Robustness "robustness",
    Models "advice for models",
}

impl Rule {
    /// Starts a rule for servers.
    pub(crate) const fn server(
        id: &'static str,
        area: Area,
        requirement_ids: &'static [&'static str],
    ) -> Self {
        Self {
            id,
            role: Role::Server,
            area,
            requirement_ids,
            requirement: "",
            hint: "",
            transports: Transports::Any,
            warn_only: false,
            warns: false,
            check: Check::Unset,
        }
    }

    /// Starts a rule for clients.
    pub(crate) const fn client(
        id: &'static str,
        area: Area,
        requirement_ids: &'static [&'static str],
    ) -> Self {
        Self {
            role: Role::Client,
            ..Self::server(id, area, requirement_ids)
        }
    }

    /// Sets the requirement, in one sentence.
    pub(crate) const fn requirement(mut self, requirement: &'static str) -> Self {
        self.requirement = requirement;
        self
    }

    /// Sets how to repair a violation, as an imperative sentence.
    pub(crate) const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    /// Sets the transports on which the rule can be observed.
    pub(crate) const fn transports(mut self, transports: Transports) -> Self {
        self.transports = transports;
        self
    }

    /// Reports violations as warnings at most: the requirement is an interpretation of prose
    /// without a key word.
    pub(crate) const fn warn_only(mut self) -> Self {
        self.warn_only = true;
        self
    }

    /// Reports violations as warnings although no requirement is behind them: results of other rules depend on them.
    pub(crate) const fn warns(mut self) -> Self {
        self.warns = true;
        self
    }

    /// Tests by sending something.
    pub(crate) const fn active(
        mut self,
        check: for<'a> fn(&'a CheckContext) -> CheckFuture<'a>,
    ) -> Self {
        self.check = Check::Active(check);
        self
    }

    /// Tests by reading the transcript.
    pub(crate) const fn passive(
        mut self,
        check: fn(&CheckContext, &Transcript) -> Outcome,
    ) -> Self {
        self.check = Check::Passive(check);
        self
    }

    /// Tests by reading what a client sent in these scenarios, or in all that ran.
    pub(crate) const fn scenarios(
        mut self,
        scenarios: &'static [Scenario],
        check: fn(&ScenarioRuns) -> Outcome,
    ) -> Self {
        self.check = Check::Scenarios(scenarios, check);
        self
    }

    /// Returns whether a name selects the rule: its id, a prefix of the id up to a dot, or its
    /// area.
    pub fn matches_name(&self, name: &str) -> bool {
        let rest = self.id.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            || self.area.matches_name(name)
    }

    /// Returns the requirements that the rule covers.
    pub fn requirements(&self) -> impl Iterator<Item = &'static Requirement> + use<> {
        let requirement_ids = self.requirement_ids.iter();
        requirement_ids.map(|id| table::find(id).expect("a test looks up every requirement id"))
    }

    /// Returns the covered requirements that apply in a revision.
    pub fn requirements_in(
        &self,
        revision: Revision,
    ) -> impl Iterator<Item = &'static Requirement> + use<> {
        // The requirements table does not list 2024-10-07; it is treated like 2024-11-05, which it
        // became.
        let date = revision.max(Revision::V2024_11_05).as_str();
        self.requirements()
            .filter(move |row| row.revisions.contains(&date))
    }

    /// Returns the requirement that a violation breaks in a revision: the named one, or else the first.
    pub fn violated_requirement(
        &self,
        id: Option<&str>,
        revision: Revision,
    ) -> Option<&'static Requirement> {
        let mut rows = self.requirements_in(revision);
        let first = rows.next()?;
        if id == Some(first.id) {
            return Some(first);
        }
        let named = rows.find(|row| id == Some(row.id));
        Some(named.unwrap_or(first))
    }

    /// Returns whether the rule applies in a revision.
    pub fn applies_in(&self, revision: Revision) -> bool {
        self.requirement_ids.is_empty() || self.requirements_in(revision).next().is_some()
    }

    /// Returns the level in a revision: that of the strictest covered requirement.
    pub fn level_in(&self, revision: Revision) -> RequirementLevel {
        let levels = self
            .requirements_in(revision)
            .map(|row| RequirementLevel::from_key_word(row.level));
        let without = if self.warns {
            RequirementLevel::Warn
        } else {
            RequirementLevel::Advice
        };
        let level = levels.max().unwrap_or(without);
        if self.warn_only {
            level.min(RequirementLevel::Warn)
        } else {
            level
        }
    }

    /// Returns the level of the requirement that a violation breaks in a revision.
    pub fn level_of(&self, id: Option<&str>, revision: Revision) -> RequirementLevel {
        let Some(row) = self.violated_requirement(id, revision) else {
            return self.level_in(revision);
        };
        let level = RequirementLevel::from_key_word(row.level);
        if self.warn_only {
            level.min(RequirementLevel::Warn)
        } else {
            level
        }
    }

    /// Returns the strictest level over all revisions.
    pub fn level(&self) -> RequirementLevel {
        let levels = Revision::ALL.map(|revision| self.level_in(revision));
        levels.into_iter().max().unwrap_or(RequirementLevel::Advice)
    }
}

impl Area {
    /// Returns whether a name is the name of the area, ignoring case.
    pub fn matches_name(self, name: &str) -> bool {
        name.eq_ignore_ascii_case(&self.id()) || name.eq_ignore_ascii_case(self.as_str())
    }
}

impl RequirementLevel {
    /// Returns the key word of the specification.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Warn => "SHOULD",
            Self::Fail => "MUST",
        }
    }

    fn from_key_word(word: &str) -> Self {
        match word {
            "MUST" | "MUST NOT" => Self::Fail,
            "SHOULD" | "SHOULD NOT" => Self::Warn,
            _ => Self::Advice,
        }
    }
}
