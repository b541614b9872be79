//! `turnbuckle check`.

mod aim;
mod terminal;

use turnbuckle_check::rule::Level;
use turnbuckle_check::{NotChecked, Options, Report, check_server};
use turnbuckle_protocol::revision::Revision;

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::logins;
use crate::session::interruptible;
use crate::target::Words;
use terminal::View;

/// Check whether a server keeps to the specification
///
/// Every revision that the server speaks is looked at. Nothing is changed on it: by default only tools are called that say
/// that they only read.
///
/// Exit codes: 0 nothing is broken, 1 something is, 2 it could not be checked.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle check [OPTIONS] <TARGET>\n       turnbuckle check [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Check {
    #[command(flatten)]
    target: TargetWord,
    /// Look only at these rules: a rule, the beginning of rules up to a dot, or an area; can be given again
    #[arg(long, value_name = "RULE")]
    only: Vec<String>,
    /// Leave out these rules, said in the same way
    #[arg(long, value_name = "RULE")]
    skip: Vec<String>,
    /// Look only at this revision; can be given again
    #[arg(long = "revision", value_name = "DATE", value_parser = revision)]
    revisions: Vec<Revision>,
    /// Call tools that do not say that they only read, too
    #[arg(long)]
    allow_writes: bool,
    /// What counts, and is shown; without it a broken MUST counts, and everything is shown
    #[arg(long, value_enum)]
    level: Option<Threshold>,
    #[command(flatten)]
    program: Program,
}

/// How much has to matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Threshold {
    /// A MUST is broken
    Fail,
    /// A SHOULD is broken
    Warn,
    /// It could be better
    Advice,
}

impl Check {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let (target, words) =
            Words::split("check", self.target.target.clone(), &self.program.command)?;
        words.end()?;
        let options = self.options(context);
        let (aimed, names_us) = aim::at(&target, context).await?;
        let checked = interruptible(async { Ok(check_server(&aimed, &options).await) }).await;
        context.voice.quiet();
        let report = match checked? {
            Ok(report) => report,
            Err(error) => {
                self.show_from_outside(&error, context)?;
                let advice = || logins::advice(&target, names_us);
                return Err(not_checked(&error).or_login(advice));
            }
        };
        self.show(&report, context)
    }

    fn options(&self, context: &Context) -> Options {
        let mut options = Options::default();
        if !self.revisions.is_empty() {
            options.revisions.clone_from(&self.revisions);
            options.revisions.sort();
            options.revisions.dedup();
        }
        options.only.clone_from(&self.only);
        options.skip.clone_from(&self.skip);
        options.allow_writes = self.allow_writes;
        if let Some(timeout) = context.options.timeout {
            options.patience = timeout;
        }
        let voice = context.voice.clone();
        options.on_progress(move |progress| voice.checking(progress))
    }

    /// Shows what is wrong with the way in which a server refuses us.
    fn show_from_outside(&self, error: &NotChecked, context: &Context) -> Result {
        match error {
            NotChecked::Denied { report, .. } if !report.findings().is_empty() => {
                // That something is broken matters less than that nothing else was looked at.
                let _ = self.show(report, context);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn show(&self, report: &Report, context: &Context) -> Result {
        let view = View {
            shows: self.level.map_or(Level::Advice, Threshold::level),
            width: context.width(),
        };
        context.print(&terminal::shown(report, &view))?;
        let counts = self.level.map_or(Level::Fail, Threshold::level);
        let broken = report.findings().into_iter();
        match broken
            .filter(|finding| finding.level >= counts && !finding.known)
            .count()
        {
            0 => Ok(()),
            1 => Err(Failure::refused("a rule is broken")),
            many => Err(Failure::refused(format!("{many} rules are broken"))),
        }
    }
}

impl Threshold {
    fn level(self) -> Level {
        match self {
            Self::Fail => Level::Fail,
            Self::Warn => Level::Warn,
            Self::Advice => Level::Advice,
        }
    }
}

fn not_checked(error: &NotChecked) -> Failure {
    let failure = Failure::not_asked(error.to_string());
    match error {
        NotChecked::Denied { .. } => failure.wanting_login(),
        _ => failure,
    }
}

fn revision(text: &str) -> std::result::Result<Revision, String> {
    text.parse().map_err(|_| {
        let known = Revision::ALL.map(Revision::as_str);
        format!("there is {}", known.join(", "))
    })
}
