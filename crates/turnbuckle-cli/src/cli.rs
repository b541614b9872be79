//! The command line, as clap parses it.

use std::{path::PathBuf, time::Duration};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use serde::Deserialize;
use turnbuckle_auth::Secret;

use crate::commands;

/// Call MCP servers from a terminal
///
/// TARGET names the server:
///
///   https://host/mcp      a server on HTTP, any protocol revision and transport
///   unix:PATH             a server on a Unix socket
///   NAME, NAME@SOURCE     a configured server; `turnbuckle servers` lists them
///   -- COMMAND ARGS...    a program to start; replaces TARGET and comes last
///
/// Exit codes: 0 success, 1 the server returned an error, 2 usage or connection error.
#[derive(Debug, Parser)]
#[command(
    name = "turnbuckle",
    version,
    after_help = EXAMPLES,
    verbatim_doc_comment,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// Options of all commands.
    #[command(flatten)]
    pub(crate) options: GlobalOptions,
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

impl Cli {
    /// Parses the command line of this process. Prints help and errors, and exits.
    pub(crate) fn from_process() -> Self {
        let parsed = Self::from_matches(&Self::definition().get_matches());
        parsed.unwrap_or_else(|error| error.exit())
    }

    fn from_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let mut cli = Self::from_arg_matches(matches)?;
        // There, `--token-file` has the tokens of callers. They must not be sent to a server.
        if matches!(cli.command, CliCommand::Bridge(_) | CliCommand::Serve(_)) {
            cli.options.authorization.token_file = None;
        }
        Ok(cli)
    }

    /// Returns the definition of the command line, in which `bridge`, `record` and `serve` show only the global options
    /// that they use.
    pub(crate) fn definition() -> clap::Command {
        let command = Self::command();
        let globals: Vec<_> = command
            .get_arguments()
            .filter(|argument| argument.is_global_set())
            .cloned()
            .collect();
        let adapt = |mut command: clap::Command, describe: fn(clap::Arg) -> clap::Arg| {
            for argument in globals.iter().cloned() {
                let id = argument.get_id().clone();
                if command.get_arguments().all(|own| *own.get_id() != id) {
                    command = command.arg(describe(argument));
                }
            }
            command
        };
        command
            .mut_subcommand("serve", |serve| adapt(serve, serve_option))
            .mut_subcommand("bridge", |bridge| adapt(bridge, bridge_option))
            .mut_subcommand("record", |record| adapt(record, record_option))
    }
}

/// Describes a global option as `serve` uses it, or hides it.
fn serve_option(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "json" => argument.help("Print one line of JSON at startup"),
        "verbose" => argument.help("Log every request: client, tool, outcome, duration"),
        "config" => argument.help("Read the settings from this file"),
        "color" => argument,
        _ => argument.hide(true),
    }
}

/// Describes a global option as `bridge` uses it, or hides it.
fn bridge_option(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "json" => argument.help("Print one line of JSON at startup"),
        "verbose" => argument.help("Log requests, and the stderr of programs"),
        "timeout" => argument.help("Wait this long for a response of a server"),
        "header" | "headers" => argument.help("Send this header to the server; repeatable"),
        "token" => argument.help("Send this token to the server"),
        "yes" => argument.help("Approve project servers without asking"),
        "config" => argument.help("Read settings (.toml) or servers from this file"),
        "era" => argument
            .help("Serve only clients of this era: legacy, modern")
            .hide_possible_values(true),
        _ => argument,
    }
}

/// Hides the global options that `record` does not use.
fn record_option(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "color" => argument,
        _ => argument.hide(true),
    }
}

const EXAMPLES: &str = "Examples:
  turnbuckle tools https://example.com/mcp
  turnbuckle call weather forecast city=Oslo days=3
  turnbuckle call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  turnbuckle read unix:/run/notes.sock note://today > today.md";

/// Options of all commands.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Print JSON: results in the format of the newest revision
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Show each message sent (>) and received (<) on stderr
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,

    /// Use this era of the protocol
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = false
    )]
    pub(crate) era: EraOption,

    /// Wait this long for a response: 500ms, 30s, 2m
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Send this HTTP header; repeatable
    #[arg(long = "header", global = true, value_name = "NAME: VALUE", value_parser = parse_header)]
    pub(crate) headers: Vec<(String, Secret)>,

    /// Approve project servers and changed tools without asking
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,

    /// Pass all environment variables to a configured program
    #[arg(long, global = true)]
    pub(crate) inherit_env: bool,

    /// Read configured servers from this file only
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Use colors
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: ColorMode,

    /// The credentials for the server.
    #[command(flatten)]
    pub(crate) authorization: AuthOptions,
}

/// The value of `--era`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EraOption {
    /// Detect what the server supports
    #[default]
    Auto,
    /// Stateless requests: 2026-07-28
    Modern,
    /// Sessions with a handshake: 2025-11-25 and earlier
    Legacy,
}

/// The value of `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorMode {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Tools(commands::ToolsCommand),
    Call(commands::CallCommand),
    Resources(commands::ResourcesCommand),
    Read(commands::ReadCommand),
    Prompts(commands::PromptsCommand),
    Prompt(commands::PromptCommand),
    Complete(commands::CompleteCommand),
    Skills(commands::SkillsCommand),
    Info(commands::InfoCommand),
    Listen(commands::ListenCommand),
    Ping(commands::PingCommand),
    Check(commands::CheckCommand),
    Login(commands::LoginCommand),
    Logout(commands::LogoutCommand),
    Whoami(commands::WhoamiCommand),
    Servers(commands::ServersCommand),
    Serve(commands::ServeCommand),
    Bridge(Box<commands::BridgeCommand>),
    Record(commands::RecordCommand),
    Context(commands::ContextCommand),
    Completions(commands::CompletionsCommand),
    Man(commands::ManCommand),
}

/// The positional argument that names the server.
#[derive(Debug, Args)]
pub(crate) struct TargetArg {
    /// The server: URL, unix:PATH or configured name
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
}

/// The program that is the server.
#[derive(Debug, Args)]
pub(crate) struct CommandArg {
    /// Start this program as the server, instead of TARGET
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|ch: char| !ch.is_ascii_digit() && ch != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err("expected a duration such as 500ms, 30s, 2m, 1h or 90d".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "expected a number".to_owned())?;
    let duration = Duration::try_from_secs_f64(number * seconds);
    let duration = duration.map_err(|error| error.to_string())?;
    if duration.is_zero() {
        Err("must be greater than zero".to_owned())
    } else {
        Ok(duration)
    }
}

fn parse_header(text: &str) -> Result<(String, Secret), String> {
    let (name, value) = text.split_once(':').ok_or("expected 'Name: value'")?;
    let token = |ch: char| ch.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(ch);
    if name.is_empty() || !name.chars().all(token) {
        return Err("invalid header name".to_owned());
    }
    let value = value.trim();
    if value.chars().any(char::is_control) {
        return Err("control characters are not allowed in a header".to_owned());
    }
    Ok((name.to_owned(), Secret::new(value)))
}

/// The credentials for a server.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Authorization")]
pub(crate) struct AuthOptions {
    /// Send this token (visible to other users: see --token-file)
    #[arg(long, global = true, value_name = "TOKEN", value_parser = parse_token)]
    pub(crate) token: Option<Secret>,

    /// Send the token in this file; - is stdin
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Use this OAuth client id instead of registering
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// Read the secret of --client-id from this file; - is stdin
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) client_secret_file: Option<PathBuf>,
}

/// Parses a bearer token: visible ASCII, with a limit on its length.
pub(crate) fn parse_token(text: &str) -> Result<Secret, String> {
    const MAX_TOKEN_BYTES: usize = 16 * 1024;
    let text = text.trim();
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.len() > MAX_TOKEN_BYTES {
        return Err(format!("must not be longer than {MAX_TOKEN_BYTES} bytes"));
    }
    // Never quote the text: it may be a mistyped secret.
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(Secret::new(text))
    } else {
        Err("must be one word of visible ASCII".to_owned())
    }
}

#[cfg(test)]
mod tests;
