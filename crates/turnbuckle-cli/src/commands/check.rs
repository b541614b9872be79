//! `turnbuckle check`.

mod aim;
mod calls;
mod checklist;
mod client;
mod format;
mod known;
mod list;
mod options;
mod terminal;

use std::path::PathBuf;

use turnbuckle_check::report::View;
use turnbuckle_check::rule::Level;
use turnbuckle_check::{NotChecked, Report, check_server};
use turnbuckle_protocol::revision::Revision;

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::logins;
use crate::session::interruptible;
use crate::target::Words;
use format::{Format, Page};

/// Check whether a server or a client keeps to the specification
///
/// Every revision that it speaks is looked at. By default nothing is changed on a server: only those tools are called that
/// say that they only read.
///
/// A client is a command that is run against servers that we play: {url} in it stands for the address of the server, or
/// {server} for a command that is the server.
///
/// Exit codes: 0 nothing that counts is broken, 1 something is, 2 it could not be checked.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle check [OPTIONS] <TARGET>\n       turnbuckle check [OPTIONS] -- <COMMAND>...\n       turnbuckle check [OPTIONS] --client -- <COMMAND WITH {url} OR {server}>...\n       turnbuckle check --list\n       turnbuckle check --checklist [TARGET]"
)]
pub(crate) struct Check {
    #[command(flatten)]
    target: TargetWord,

    /// Check the client that the command is, instead of a server
    #[arg(long)]
    client: bool,

    /// Look only at these rules: a rule, the beginning of rules up to a dot, or an area; can be given again
    #[arg(long, value_name = "RULE")]
    only: Vec<String>,

    /// Leave out these rules, said in the same way
    #[arg(long, value_name = "RULE")]
    skip: Vec<String>,

    /// Look only at this revision; can be given again
    #[arg(long = "revision", value_name = "DATE", value_parser = options::revision)]
    revisions: Vec<Revision>,

    /// What counts, and is shown; without it a broken MUST counts, and everything is shown
    #[arg(long, value_enum)]
    level: Option<Threshold>,

    /// Call this tool with arguments as KEY=VALUE, KEY:=JSON or one JSON object; can be given again
    #[arg(long = "call", value_names = ["TOOL", "ARGS"], num_args = 1..)]
    calls: Vec<String>,

    /// Call tools that do not say that they only read, too
    #[arg(long)]
    allow_writes: bool,

    /// How the report is written
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Write the report to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write another report to a file: html=report.html; can be given again
    #[arg(long = "report", value_name = "FORMAT=FILE", value_parser = format::page)]
    reports: Vec<Page>,

    /// Do not count what this file knows to be broken; what it knows wrongly counts
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Write what is broken to this file, as known from now on
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,

    /// List the rules instead; with --client those for clients
    #[arg(long)]
    list: bool,

    /// Print the compliance checklist: each line with its rules, or with what a check of the target says
    #[arg(long, conflicts_with_all = ["list", "reports", "baseline", "write_baseline"])]
    checklist: bool,

    /// Be the server of a client on stdio that is checked, which is played at this address
    #[arg(long, hide = true, value_name = "ADDRESS")]
    play: Option<String>,

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
        if let Some(address) = &self.play {
            return Ok(turnbuckle_check::stdio_bridge(address).await?);
        }
        self.ensure_rules()?;
        if self.list {
            return self.list(context);
        }
        if self.checklist && self.target.target.is_none() && self.program.command.is_empty() {
            return self.print_checklist(None, context);
        }
        let known = self.known(context)?;
        let mut report = match self.client {
            true => self.check_client(context).await?,
            false => self.check_server(context).await?,
        };
        if let Some(known) = known {
            known.apply(&mut report);
        }
        match self.checklist {
            true => self.print_checklist(Some(&report), context)?,
            false => self.write(&report, context)?,
        }
        self.judge(&report, context)
    }

    async fn check_server(&self, context: &Context) -> Result<Report> {
        let words = self.target.target.clone();
        let (target, words) = Words::split("check", words, &self.program.command)?;
        words.end()?;
        let options = self.options(&target, context).await?;
        let (aimed, names_us) = aim::at(&target, context).await?;
        let checked = interruptible(async { Ok(check_server(&aimed, &options).await) }).await;
        context.voice.quiet();
        let error = match checked? {
            Ok(report) => return Ok(report),
            Err(error) => error,
        };
        let failure = Failure::not_asked(error.to_string());
        Err(match error {
            NotChecked::Denied { report, .. } => {
                // What can be seen from outside may be wrong already.
                if !report.findings().is_empty() {
                    self.write(&report, context)?;
                }
                failure
                    .wanting_login()
                    .or_login(|| logins::advice(&target, names_us))
            }
            NotChecked::Moved { .. } => failure.hint("check the server there"),
            NotChecked::NothingSpoken(_) => {
                failure.hint("see whether the URL or the command is the one of an MCP server")
            }
            _ => failure,
        })
    }

    /// Writes all reports that are wanted.
    fn write(&self, report: &Report, context: &Context) -> Result {
        let (view, width) = (self.view(), context.width());
        for page in &self.reports {
            let text = page.format.document(report, &view, width);
            context.save(&page.file, text.as_bytes())?;
        }
        let format = self.format(context);
        match &self.output {
            Some(file) => {
                let text = format.document(report, &view, width);
                context.save(file, text.as_bytes())
            }
            None if format == Format::Terminal => {
                context.print(&terminal::shown(report, &view, width))
            }
            None => context.bytes(format.document(report, &view, width).as_bytes()),
        }
    }

    fn format(&self, context: &Context) -> Format {
        match (self.format, context.options.json) {
            (Some(format), _) => format,
            (None, true) => Format::Json,
            (None, false) => Format::Terminal,
        }
    }

    fn view(&self) -> View {
        match self.level {
            None => View::default(),
            Some(level) => View {
                counts: level.level(),
                shows: level.level(),
            },
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
