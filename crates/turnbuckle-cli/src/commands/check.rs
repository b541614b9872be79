//! `turnbuckle check`.

mod listing;
mod options;
mod report;

use std::path::PathBuf;

use turnbuckle_check::{
    CheckError, ClientTarget, Report,
    baseline::{Baseline, BaselineEntry},
    check_client, check_server,
    report::ReportOptions,
    rule::RequirementLevel,
};
use turnbuckle_protocol::revision::Revision;

use self::report::{ReportFile, ReportFormat};
use crate::{
    cli::{CommandArg, TargetArg},
    connection::{self, or_interrupted},
    context::CommandContext,
    error::{CliError, Result},
    logins,
    target::PositionalArgs,
};

/// Check a server or client against the specification
///
/// All protocol revisions that it supports are checked. By default a check does not change anything on a server: it
/// calls only tools annotated as read-only.
///
/// A client is a command that is run against simulated servers: {url} in it is replaced by the URL of the server, or
/// {server} by a command that starts the server.
///
/// Exit codes: 0 no violations, 1 violations found, 2 the check could not run.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle check [OPTIONS] <TARGET>\n       turnbuckle check [OPTIONS] -- <COMMAND>...\n       turnbuckle check [OPTIONS] --client -- <COMMAND WITH {url} OR {server}>...\n       turnbuckle check --list\n       turnbuckle check --checklist [TARGET]"
)]
pub(crate) struct CheckCommand {
    #[command(flatten)]
    target: TargetArg,

    /// Check a client: the command after --
    #[arg(long)]
    client: bool,

    /// Check only this rule, rule prefix or area; repeatable
    #[arg(long, value_name = "RULE")]
    only: Vec<String>,

    /// Skip this rule, rule prefix or area; repeatable
    #[arg(long, value_name = "RULE")]
    skip: Vec<String>,

    /// Check only this protocol revision; repeatable
    #[arg(long = "revision", value_name = "DATE", value_parser = options::parse_revision)]
    revisions: Vec<Revision>,

    /// Show and count only this severity and above
    ///
    /// By default everything is shown, and violations of MUST count.
    #[arg(long, value_enum)]
    level: Option<SeverityThreshold>,

    /// Call this tool with KEY=VALUE or JSON; repeatable
    #[arg(long = "call", value_names = ["TOOL", "ARGS"], num_args = 1..)]
    calls: Vec<String>,

    /// Also call tools that are not annotated read-only
    #[arg(long)]
    allow_writes: bool,

    /// Format of the report
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<ReportFormat>,

    /// Write the report to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write another report: html=report.html; repeatable
    #[arg(long = "report", value_name = "FORMAT=FILE", value_parser = report::parse_report_file)]
    reports: Vec<ReportFile>,

    /// Ignore the violations in this file
    ///
    /// An entry that no longer occurs is an error.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Write the current violations to this baseline file
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,

    /// List the rules; with --client those for clients
    #[arg(long)]
    list: bool,

    /// Print the compliance checklist, with results of TARGET
    #[arg(long, conflicts_with_all = ["list", "reports", "baseline", "write_baseline"])]
    checklist: bool,

    /// Act as the stdio server of a checked client; the mock server is at this address
    #[arg(long, hide = true, value_name = "ADDRESS")]
    play: Option<String>,

    #[command(flatten)]
    program: CommandArg,
}

/// The value of `--level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SeverityThreshold {
    /// Violations of MUST
    Fail,
    /// Violations of SHOULD
    Warn,
    /// Advice
    Advice,
}

impl CheckCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
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
        let baseline = self.read_baseline(context)?;
        let mut report = if self.client {
            self.check_client(context).await?
        } else {
            self.check_server(context).await?
        };
        if let Some(baseline) = baseline {
            baseline.apply(&mut report);
        }
        if self.checklist {
            self.print_checklist(Some(&report), context)?;
        } else {
            self.write(&report, context)?;
        }
        self.exit_result(&report, context)
    }

    async fn check_server(&self, context: &CommandContext) -> Result<Report> {
        let args = self.target.target.clone();
        let (target, args) = PositionalArgs::split("check", args, &self.program.command)?;
        args.finish()?;
        let options = self.options(&target, context).await?;
        let (check_target, has_credentials) = options::check_target(&target, context).await?;
        let checked =
            or_interrupted(async { Ok(check_server(&check_target, &options).await) }).await;
        context.ui.clear_progress();
        let error = match checked? {
            Ok(report) => return Ok(report),
            Err(error) => error,
        };
        if matches!(
            error,
            CheckError::Unreachable(_) | CheckError::NoSupportedRevision(_)
        ) {
            // A client knows best why it cannot connect: the error of `turnbuckle info`.
            connection::with_client(&target, context, async |_| Ok(())).await?;
        }
        let failure = CliError::could_not_run(error.to_string());
        Err(match error {
            CheckError::Unauthorized { report, .. } => {
                // Requests without credentials may already have found violations.
                if !report.findings().is_empty() {
                    self.write(&report, context)?;
                }
                failure
                    .needs_login()
                    .with_login_hint(|| logins::login_hint(&target, has_credentials))
            }
            CheckError::Redirected { .. } => failure.hint("check the server at that URL"),
            CheckError::NoSupportedRevision(_) => {
                failure.hint("check that the URL or command is an MCP server")
            }
            _ => failure,
        })
    }

    /// Writes all requested reports.
    fn write(&self, report: &Report, context: &CommandContext) -> Result {
        let (view, width) = (self.view(), context.width());
        for file in &self.reports {
            let text = file.format.document(report, &view, width);
            context.write_file(&file.file, text.as_bytes())?;
        }
        let format = self.format(context);
        match &self.output {
            Some(file) => {
                let text = format.document(report, &view, width);
                context.write_file(file, text.as_bytes())
            }
            None if format == ReportFormat::Terminal => {
                context.print(&report::render(report, &view, width))
            }
            None => context.write_bytes(format.document(report, &view, width).as_bytes()),
        }
    }

    fn format(&self, context: &CommandContext) -> ReportFormat {
        match (self.format, context.options.json) {
            (Some(format), _) => format,
            (None, true) => ReportFormat::Json,
            (None, false) => ReportFormat::Terminal,
        }
    }

    fn view(&self) -> ReportOptions {
        match self.level {
            None => ReportOptions::default(),
            Some(level) => ReportOptions {
                fail_on: level.level(),
                min_level: level.level(),
            },
        }
    }
}

impl SeverityThreshold {
    fn level(self) -> RequirementLevel {
        match self {
            Self::Fail => RequirementLevel::Fail,
            Self::Warn => RequirementLevel::Warn,
            Self::Advice => RequirementLevel::Advice,
        }
    }
}

impl CheckCommand {
    pub(super) async fn check_client(&self, context: &CommandContext) -> Result<Report> {
        if self.target.target.is_some() || !self.calls.is_empty() || self.allow_writes {
            let message =
                "--client needs a command after `--`, without TARGET, --call and --allow-writes";
            return Err(CliError::could_not_run(message).hint("see `turnbuckle check --help`"));
        }
        let target = ClientTarget::command(self.program.command.iter().cloned(), bridge_command()?)
            .map_err(|error| {
                let example = "for example `turnbuckle check --client -- my-client --url {url}`";
                CliError::could_not_run(error.to_string()).hint(example)
            })?;
        let target = target.observer(context.supervisor.clone());
        let options = self.options_for_client(context);
        let checked = or_interrupted(async { Ok(check_client(&target, &options).await) }).await;
        context.ui.clear_progress();
        checked?.map_err(|error| {
            CliError::could_not_run(error.to_string()).hint(
                "check that the command connects to `{url}` or `{server}`; \
                 increase --timeout for a slow client",
            )
        })
    }
}

/// Returns the command that a client on stdio starts as its server: this program.
fn bridge_command() -> Result<Vec<String>> {
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy().into_owned();
    Ok(vec![program, "check".to_owned(), "--play".to_owned()])
}

impl CheckCommand {
    /// Reads the baseline, if one is given.
    pub(super) fn read_baseline(&self, context: &CommandContext) -> Result<Option<Baseline>> {
        let Some(file) = &self.baseline else {
            return Ok(None);
        };
        let path = context.environment.cwd.join(file);
        let invalid = |why: &dyn std::fmt::Display| {
            CliError::could_not_run(format!("invalid baseline {}: {why}", file.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| invalid(&error))?;
        let baseline = Baseline::parse(&text).map_err(|error| invalid(&error))?;
        Ok(Some(baseline))
    }

    /// Returns an error if there are violations that are not in the baseline, or stale baseline entries.
    pub(super) fn exit_result(&self, report: &Report, context: &CommandContext) -> Result {
        if let Some(file) = &self.write_baseline {
            let baseline = Baseline::from_report(report, &self.view()).to_string();
            return context.write_file(file, baseline.as_bytes());
        }
        let violated = match self.view().failures(report) {
            0 => None,
            1 => Some("1 rule is violated".to_owned()),
            many => Some(format!("{many} rules are violated")),
        };
        match (violated, stale_entries(report)) {
            (None, None) => match report.server_end() {
                Some(end) => Err(CliError::could_not_run(format!(
                    "the check is incomplete: {end}"
                ))),
                None => Ok(()),
            },
            (Some(violated), None) => Err(CliError::negative_result(violated)),
            (violated, Some(stale)) => {
                let message: Vec<_> = violated.into_iter().chain([stale]).collect();
                Err(CliError::negative_result(message.join("; "))
                    .hint("remove these entries from the baseline"))
            }
        }
    }
}

fn stale_entries(report: &Report) -> Option<String> {
    let entries: Vec<_> = report
        .stale_baseline
        .iter()
        .map(BaselineEntry::to_string)
        .collect();
    match entries.as_slice() {
        [] => None,
        entries => Some(format!(
            "the baseline has entries that no longer occur:\n  {}",
            entries.join("\n  ")
        )),
    }
}
