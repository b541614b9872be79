//! What is checked: a rule, the rows of the ledger that it judges, and how it finds out.

use std::pin::Pin;

use serde::Serialize;
use turnbuckle_ledger::{Requirement, table};
use turnbuckle_protocol::revision::Revision;

use crate::client::{Scene, Takes};
use crate::outcome::Outcome;
use crate::tape::Tape;
use crate::visit::Visit;

/// Something that a server or a client has to get right.
#[derive(Debug)]
#[must_use = "a rule judges nobody before it is in the catalogue"]
pub struct Rule {
    /// Its name, for example `base.unknown-method`; stable.
    pub id: &'static str,
    /// Whom it binds.
    pub role: Role,
    /// What it is about.
    pub area: Area,
    /// The rows of the ledger that it judges; none for advice.
    pub rows: &'static [&'static str],
    /// What is right, in one sentence.
    pub says: &'static str,
    /// How to mend what is wrong, in one sentence.
    pub cure: &'static str,
    /// On which transports it can be seen.
    pub on: On,
    /// Whether it warns where its rows say MUST, because the specification says so without a key word.
    pub gentle: bool,
    pub(crate) check: Check,
}

/// How a rule finds out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    /// Nobody has said yet.
    Unset,
    /// By doing something, and looking at what comes of it.
    Ask(for<'a> fn(&'a Visit) -> Asking<'a>),
    /// By looking at all that was said, when everything else is done.
    Look(fn(&Visit, &Tape) -> Outcome),
    /// By looking at what a client said to servers that were played for it, among them these.
    Watch(&'static [Scene], fn(&Takes) -> Outcome),
}

/// A rule that is finding out.
pub(crate) type Asking<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Whom a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Whoever answers.
    Server,
    /// Whoever asks.
    Client,
}

/// The transports on which a rule can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// All of them.
    Any,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    HttpSse,
    /// A line for each message: standard streams and sockets.
    Lines,
    /// The standard streams of a process.
    Stdio,
}

/// How much it matters that a rule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It would be better.
    Advice,
    /// The specification says SHOULD.
    Warn,
    /// The specification says MUST.
    Fail,
}

macro_rules! areas {
    ($($name:ident $text:literal),* $(,)?) => {
        /// What a rule is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Area { $(#[doc = $text] $name),* }

        impl Area {
            /// All areas, in the order of reports.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns its name, as people read it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// Returns its name in one word, as the command line takes it.
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
    Models "good for models",
}

impl Rule {
    /// Begins a rule for servers.
    pub(crate) const fn server(
        id: &'static str,
        area: Area,
        rows: &'static [&'static str],
    ) -> Self {
        Self {
            id,
            role: Role::Server,
            area,
            rows,
            says: "",
            cure: "",
            on: On::Any,
            gentle: false,
            check: Check::Unset,
        }
    }

    /// Begins a rule for clients.
    pub(crate) const fn client(
        id: &'static str,
        area: Area,
        rows: &'static [&'static str],
    ) -> Self {
        Self {
            role: Role::Client,
            ..Self::server(id, area, rows)
        }
    }

    /// Says what is right, in one sentence.
    pub(crate) const fn says(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    /// Says how to mend what is wrong, in one sentence.
    pub(crate) const fn cure(mut self, cure: &'static str) -> Self {
        self.cure = cure;
        self
    }

    /// Says on which transports it can be seen.
    pub(crate) const fn on(mut self, on: On) -> Self {
        self.on = on;
        self
    }

    /// Warns at most: what the rows say is a reading of plain prose.
    pub(crate) const fn gently(mut self) -> Self {
        self.gentle = true;
        self
    }

    /// Finds out by doing something.
    pub(crate) const fn ask(mut self, check: for<'a> fn(&'a Visit) -> Asking<'a>) -> Self {
        self.check = Check::Ask(check);
        self
    }

    /// Finds out by looking at all that was said.
    pub(crate) const fn look(mut self, check: fn(&Visit, &Tape) -> Outcome) -> Self {
        self.check = Check::Look(check);
        self
    }

    /// Finds out by looking at what a client said in these scenes, or in all that were played.
    pub(crate) const fn watch(
        mut self,
        scenes: &'static [Scene],
        check: fn(&Takes) -> Outcome,
    ) -> Self {
        self.check = Check::Watch(scenes, check);
        self
    }

    /// Says whether a name means it: its own, the beginning of its own up to a dot, or the name of its area.
    pub fn is_called(&self, name: &str) -> bool {
        let rest = self.id.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            || self.area.is_called(name)
    }

    /// Returns the rows of the ledger that it judges.
    pub fn requirements(&self) -> impl Iterator<Item = &'static Requirement> + use<> {
        let rows = self.rows.iter();
        rows.map(|id| table::find(id).expect("a test looks up every row"))
    }

    /// Returns the rows of the ledger that stand in a revision.
    pub fn rows_in(
        &self,
        revision: Revision,
    ) -> impl Iterator<Item = &'static Requirement> + use<> {
        // The ledger has no rows of the first draft: it was spoken like the revision that came of it.
        let date = revision.max(Revision::V2024_11_05).as_str();
        self.requirements()
            .filter(move |row| row.revisions.contains(&date))
    }

    /// Says whether it binds in a revision.
    pub fn binds_in(&self, revision: Revision) -> bool {
        self.rows.is_empty() || self.rows_in(revision).next().is_some()
    }

    /// Returns how much it matters in a revision: as much as the strictest of its rows.
    pub fn level_in(&self, revision: Revision) -> Level {
        let levels = self.rows_in(revision).map(|row| Level::of(row.level));
        let level = levels.max().unwrap_or(Level::Advice);
        match self.gentle {
            true => level.min(Level::Warn),
            false => level,
        }
    }

    /// Returns how much it matters where it matters most.
    pub fn level(&self) -> Level {
        let levels = Revision::ALL.map(|revision| self.level_in(revision));
        levels.into_iter().max().unwrap_or(Level::Advice)
    }
}

impl Area {
    /// Says whether a name is its own; upper and lower case are the same.
    pub fn is_called(self, name: &str) -> bool {
        name.eq_ignore_ascii_case(&self.id()) || name.eq_ignore_ascii_case(self.as_str())
    }
}

impl Level {
    /// Returns the word for it, as the specification has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Warn => "SHOULD",
            Self::Fail => "MUST",
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "MUST" | "MUST NOT" => Self::Fail,
            "SHOULD" | "SHOULD NOT" => Self::Warn,
            _ => Self::Advice,
        }
    }
}
