//! Converts the options of the command line for the checker.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal as _},
    sync::Mutex,
};

use serde_json::Value;
use turnbuckle_check as check;
use turnbuckle_check::{
    CheckMessage, CheckOptions, CheckProgress, catalog,
    rule::{Role, Rule},
};
use turnbuckle_client as client;
use turnbuckle_client::Client;
use turnbuckle_protocol::{revision::Revision, types::JsonObject};
use turnbuckle_text::shell;

use super::CheckCommand;
use crate::{
    commands::call,
    connection,
    context::CommandContext,
    error::{CliError, Result},
    lock, logins,
    output::{sanitize, style},
    target::{
        CliTarget,
        resolve::{self, ResolvedTarget},
    },
    tool_args::{self, UnknownArguments},
    ui::Ui,
};

impl CheckCommand {
    /// Returns an error for an unknown rule name, or if no rule is left.
    pub(super) fn ensure_rules(&self) -> Result {
        for name in self.only.iter().chain(&self.skip) {
            catalog::validate_name(name).map_err(|unknown| {
                CliError::could_not_run(unknown.to_string())
                    .hint("list the rules with `turnbuckle check --list`")
            })?;
        }
        // A check without rules would succeed.
        let (role, role_name) = if self.client {
            (Role::Client, "clients")
        } else {
            (Role::Server, "servers")
        };
        let options = self.rule_selection();
        let applies = |rule: &Rule| options.revisions.iter().any(|&date| rule.applies_in(date));
        let mut rules = catalog::all().filter(|rule| self.list || rule.role == role);
        if rules.any(|rule| options.selects(rule) && applies(rule)) {
            return Ok(());
        }
        let message = format!("no rule for {role_name} is selected");
        Err(CliError::could_not_run(message).hint("list the rules with `turnbuckle check --list`"))
    }

    pub(super) async fn options(
        &self,
        target: &CliTarget,
        context: &CommandContext,
    ) -> Result<CheckOptions> {
        let mut options = self.rule_selection();
        options.calls = prepare_calls(&self.calls, target, context).await?;
        options.allow_writes = self.allow_writes;
        Ok(with_timeout_and_progress(options, context))
    }

    pub(super) fn options_for_client(&self, context: &CommandContext) -> CheckOptions {
        let mut options = with_timeout_and_progress(self.rule_selection(), context);
        if let Some(timeout) = context.options.timeout {
            options.client_run_timeout = timeout;
            options.client_idle_timeout = options.client_idle_timeout.max(timeout / 4);
        }
        options
    }

    /// Returns the selected rules and revisions.
    pub(super) fn rule_selection(&self) -> CheckOptions {
        let mut options = CheckOptions::default();
        if !self.revisions.is_empty() {
            options.revisions.clone_from(&self.revisions);
            options.revisions.sort();
            options.revisions.dedup();
        }
        options.only.clone_from(&self.only);
        options.skip.clone_from(&self.skip);
        options
    }
}

/// Sets the timeout of the command line, and shows progress.
fn with_timeout_and_progress(mut options: CheckOptions, context: &CommandContext) -> CheckOptions {
    if let Some(timeout) = context.options.timeout {
        options.response_timeout = timeout;
    }
    let output = CheckOutput::new(context.ui.clone());
    let options = options.on_progress(move |progress| output.progress(progress));
    if !context.options.verbose {
        return options;
    }
    let ui = context.ui.clone();
    options.on_message(move |message| print_message(&ui, message))
}

/// Shows the progress of a check: a bar on a terminal, otherwise a line for each revision and area.
struct CheckOutput {
    ui: Ui,
    /// The revisions and areas for which a line was printed.
    printed_areas: Mutex<BTreeSet<(&'static str, &'static str)>>,
}

impl CheckOutput {
    fn new(ui: Ui) -> Self {
        Self {
            ui,
            printed_areas: Mutex::default(),
        }
    }

    fn progress(&self, progress: CheckProgress) {
        let (done, total) = (progress.done, progress.total);
        if io::stderr().is_terminal() {
            let message = format!("{} {}", progress.revision, progress.rule);
            self.ui.progress(done as f64, Some(total as f64), &message);
            return;
        }
        let area = (progress.revision.as_str(), progress.area.as_str());
        let is_new = { lock(&self.printed_areas).insert(area) };
        if is_new {
            let (revision, area) = area;
            self.ui
                .print(&format!("checking {revision} {area} ({done} of {total})\n"));
        }
    }
}

/// Prints a message of a check.
fn print_message(ui: &Ui, message: CheckMessage<'_>) {
    let sign = style::styled(style::DIM, if message.from_peer { "<" } else { ">" });
    let parts = [message.start_line.unwrap_or_default(), message.text];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let text = sanitize::line(&parts.join(" "));
    ui.print(&format!("{sign} {} {text}\n", message.revision));
}

pub(super) fn parse_revision(text: &str) -> std::result::Result<Revision, String> {
    text.parse().map_err(|_| {
        let names = Revision::ALL.map(Revision::as_str);
        format!("expected one of {}", names.join(", "))
    })
}

/// A call on the command line.
#[derive(Debug, Default, PartialEq)]
struct RequestedCall {
    tool: String,
    defaults: JsonObject,
    pairs: Vec<String>,
}

/// Returns the calls. Connects to the server only if arguments have to be typed by its schemas.
async fn prepare_calls(
    words: &[String],
    target: &CliTarget,
    context: &CommandContext,
) -> Result<Vec<(String, Value)>> {
    let requested = parse_calls(words)?;
    if requested.iter().all(|call| call.pairs.is_empty()) {
        let call = |call: RequestedCall| (call.tool, Value::Object(call.defaults));
        return Ok(requested.into_iter().map(call).collect());
    }
    connection::with_client(target, context, async |client| {
        let mut calls = Vec::new();
        for call in requested {
            calls.push(resolve_arguments(call, client, target).await?);
        }
        Ok(calls)
    })
    .await
}

async fn resolve_arguments(
    call: RequestedCall,
    client: &Client,
    target: &CliTarget,
) -> Result<(String, Value)> {
    let tool = call::find_tool(client, &call.tool).await?;
    // Exit code 2, because it is not a result of the check.
    let missing = || {
        let list = target.command_line("tools", "");
        CliError::could_not_run(format!("unknown tool `{}`", call.tool))
            .hint(format!("list the tools with `{list}`"))
    };
    let tool = tool.ok_or_else(missing)?;
    let arguments = tool_args::tool_arguments(
        &call.pairs,
        call.defaults,
        &tool.input_schema,
        UnknownArguments::Refuse,
    )
    .map_err(|error| CliError::could_not_run(error.to_string()))?;
    Ok((call.tool, Value::Object(arguments)))
}

/// Splits words into calls: each starts with a name, followed by words with `=` or a JSON object.
fn parse_calls(words: &[String]) -> Result<Vec<RequestedCall>> {
    let mut calls: Vec<RequestedCall> = Vec::new();
    for word in words {
        let is_object = word.starts_with('{');
        match calls.last_mut() {
            Some(call) if is_object => call.defaults = parse_object(word)?,
            Some(call) if word.contains('=') && !word.contains("://") => {
                call.pairs.push(word.clone());
            }
            _ if word.contains("://") || word.starts_with("unix:") => {
                let message = format!("`{word}` is not a tool name");
                return Err(CliError::could_not_run(message).hint("put TARGET before --call"));
            }
            _ if is_object || word.contains('=') => {
                let message = format!("missing tool name before `{word}`");
                return Err(CliError::could_not_run(message).hint("use --call TOOL ARGS"));
            }
            _ => calls.push(RequestedCall {
                tool: word.clone(),
                ..RequestedCall::default()
            }),
        }
    }
    Ok(calls)
}

fn parse_object(word: &str) -> Result<JsonObject> {
    serde_json::from_str(word).map_err(|error| {
        CliError::could_not_run(format!(
            "the arguments of --call are not a JSON object: {error}"
        ))
    })
}

/// Returns the target for the checker, and whether there are credentials for it.
pub(super) async fn check_target(
    target: &CliTarget,
    context: &CommandContext,
) -> Result<(check::ServerTarget, bool)> {
    let label = match target {
        CliTarget::Command(args) => {
            let args: Vec<_> = args.iter().map(|word| shell::quote(word)).collect();
            args.join(" ")
        }
        other => other.label(),
    };
    let resolved = resolve::resolve(target, context)?;
    let has_credentials = resolved.has_credentials();
    let check_target = match resolved {
        ResolvedTarget::Http(http_entry) => {
            let mut headers: Vec<_> = http_entry
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect();
            headers.extend(logins::login_headers(&http_entry, context).await?);
            let check_target = check::ServerTarget::http(
                &http_entry.url,
                resolve::http_client(&http_entry, context),
                headers,
            )
            .by_network();
            if http_entry.sse {
                check_target.http_sse()
            } else {
                check_target
            }
        }
        ResolvedTarget::Local(client::Target::Command(child)) => {
            check::ServerTarget::child(label, child)
        }
        ResolvedTarget::Local(client::Target::Unix(unix)) => {
            check::ServerTarget::streams(label, move || connect(unix.path().to_owned()))
        }
        ResolvedTarget::Local(_) => {
            return Err(CliError::could_not_run("this server cannot be checked"));
        }
    };
    Ok((check_target, has_credentials))
}

#[cfg(unix)]
async fn connect(
    path: std::path::PathBuf,
) -> std::io::Result<(
    tokio::net::unix::OwnedReadHalf,
    tokio::net::unix::OwnedWriteHalf,
)> {
    Ok(tokio::net::UnixStream::connect(path).await?.into_split())
}

#[cfg(not(unix))]
async fn connect(_: std::path::PathBuf) -> std::io::Result<(tokio::io::Empty, tokio::io::Sink)> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::style;

    fn calls(words: &[&str]) -> Result<Vec<RequestedCall>> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        parse_calls(&words)
    }

    #[test]
    fn calls_are_split_at_tool_names() {
        let calls = calls(&[
            "forecast",
            "city=Oslo",
            "days:=3",
            "add",
            r#"{"a": 1}"#,
            "list",
        ]);

        let calls = calls.unwrap();
        assert_eq!(calls.len(), 3);
        assert_eq!(calls[0].pairs, ["city=Oslo", "days:=3"]);
        assert_eq!(calls[1].defaults["a"], 1);
        assert_eq!((&*calls[2].tool, calls[2].pairs.len()), ("list", 0));
    }

    #[test]
    fn a_target_after_call_is_an_error() {
        let failure = |words: &[&str]| style::strip(&calls(words).unwrap_err().render());

        insta::assert_snapshot!(failure(&["forecast", "city=Oslo", "https://a.example/mcp"]), @r"
        error: `https://a.example/mcp` is not a tool name

        hint: put TARGET before --call
        ");
        insta::assert_snapshot!(failure(&["city=Oslo"]), @r"
        error: missing tool name before `city=Oslo`

        hint: use --call TOOL ARGS
        ");
        insta::assert_snapshot!(failure(&["add", "{"]), @"error: the arguments of --call are not a JSON object: EOF while parsing an object at line 1 column 1");
    }
}
