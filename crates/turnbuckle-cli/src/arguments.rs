//! The command line as clap reads it.

mod authorization;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands;
use crate::secret::Secret;
pub(crate) use authorization::{Authorization, token};

/// Call MCP servers from a terminal
///
/// TARGET says which server is meant:
///
///   https://host/mcp      a server on HTTP, of any revision and either transport
///   unix:PATH             a server on a Unix socket
///   NAME, NAME@SOURCE     a server of a configuration; `turnbuckle servers` lists them
///   -- COMMAND ARGS...    a program that is started for this one command; it stands at the
///                         end, and there is no word for TARGET then
///
/// Exit codes: 0 done, 1 the answer is no, 2 it could not be asked.
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
pub(crate) struct Arguments {
    /// What holds for every command.
    #[command(flatten)]
    pub(crate) options: Options,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "Examples:
  turnbuckle tools https://example.com/mcp
  turnbuckle call weather forecast city=Oslo days=3
  turnbuckle call echo text=hello -- npx -y @modelcontextprotocol/server-everything
  turnbuckle read unix:/run/notes.sock note://today > today.md";

/// What holds for every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Options {
    /// Print JSON: the result as the server gave it, in the newest shape
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Show every message that is sent (>) and received (<) on stderr
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,

    /// Speak to the server as in this era of the protocol
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = false
    )]
    pub(crate) era: Era,

    /// Wait this long for an answer: 500ms, 30s, 2m
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Send this header, too; can be given again
    #[arg(long = "header", global = true, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, Secret)>,

    /// Use what a project's configuration says, and tools that have changed, without asking
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,

    /// Pass all environment variables to a configured program
    #[arg(long, global = true)]
    pub(crate) inherit_env: bool,

    /// Look for servers in this file only
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: Color,

    /// Who we are to a server.
    #[command(flatten)]
    pub(crate) authorization: Authorization,
}

/// An era of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Era {
    /// Whichever the server knows
    #[default]
    Auto,
    /// Every request on its own: 2026-07-28
    Modern,
    /// With a handshake: 2025-11-25 and earlier
    Legacy,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Tools(commands::Tools),
    Call(commands::Call),
    Resources(commands::Resources),
    Read(commands::Read),
    Prompts(commands::Prompts),
    Prompt(commands::Prompt),
    Complete(commands::Complete),
    Skills(commands::Skills),
    Info(commands::Info),
    Listen(commands::Listen),
    Ping(commands::Ping),
    Check(commands::Check),
    Login(commands::Login),
    Logout(commands::Logout),
    Whoami(commands::Whoami),
    Servers(commands::Servers),
    Serve(commands::Serve),
    #[command(name = "context")]
    Memory(commands::Memory),
    Completions(commands::Completions),
    Man(commands::Man),
}

/// The word for the server.
#[derive(Debug, Args)]
pub(crate) struct TargetWord {
    /// The server: URL, unix:PATH, or its name in a configuration; left out before `-- COMMAND`
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
}

/// The program that is the server.
#[derive(Debug, Args)]
pub(crate) struct Program {
    /// In place of TARGET: a program to start, which is spoken to on its stdin and stdout
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err("write it as 500ms, 30s, 2m, 1h or 90d".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "a number is missing".to_owned())?;
    let duration = Duration::try_from_secs_f64(number * seconds);
    let duration = duration.map_err(|error| error.to_string())?;
    match duration.is_zero() {
        true => Err("it has to be longer than nothing".to_owned()),
        false => Ok(duration),
    }
}

fn header(text: &str) -> Result<(String, Secret), String> {
    let (name, value) = text.split_once(':').ok_or("write it as 'Name: value'")?;
    let token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
    if name.is_empty() || !name.chars().all(token) {
        return Err("this is no name of a header".to_owned());
    }
    let value = value.trim();
    if value.chars().any(char::is_control) {
        return Err("control characters have no place in a header".to_owned());
    }
    Ok((name.to_owned(), Secret::new(value)))
}

#[cfg(test)]
mod tests;
