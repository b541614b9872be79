//! Asks before something that came with a project is first used.
//!
//! A file of a project can be anybody's: the commands in it are shown and asked for, and so are URLs that are sent
//! variables of the environment. The answer is remembered for this file and exactly this definition.

mod memory;

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::output::{plain, style};
use crate::servers::{Entry, Scope, Server};
use crate::state;
pub(crate) use memory::Memory;

/// Who can answer the question.
pub(crate) enum Asking<'a> {
    /// `--yes`: whatever it is.
    Yes,
    /// Nobody.
    NoTerminal,
    /// Somebody at a terminal.
    Terminal(&'a mut dyn BufRead, &'a mut dyn Write),
}

/// Makes sure that the user wants a server of a configuration to be used.
pub(crate) fn ensure(
    server: &Server,
    resolved: &Entry,
    environment: &Environment,
    asking: Asking<'_>,
) -> Result {
    let variables = server.variables(environment);
    if server.scope == Scope::User || !is_risky(resolved, &variables) {
        return Ok(());
    }
    let memory = Memory::of(environment);
    let digest = digest(server);
    if matches!(asking, Asking::Yes) || memory.knows(&server.file, &digest) {
        return Ok(());
    }
    let question = question(server, resolved, &variables);
    let Asking::Terminal(reader, writer) = asking else {
        return Err(no_terminal(&question));
    };
    if !ask(&question, reader, writer)? {
        let message = format!("`{}` was not started", server.name);
        return Err(Failure::not_asked(message));
    }
    memory.remember(&server.file, &digest).map_err(|error| {
        Failure::not_asked(format!("the answer cannot be remembered: {error}"))
            .hint("use `--yes` to go on without")
    })
}

fn no_terminal(question: &str) -> Failure {
    Failure::not_asked(format!(
        "{question}it came with a project, and there is no terminal to ask whether to use it"
    ))
    .hint("look at it, then use `--yes`, or answer once at a terminal")
}

fn is_risky(resolved: &Entry, variables: &[String]) -> bool {
    matches!(resolved, Entry::Start(_)) || !variables.is_empty()
}

/// Shows everything about a definition but the values of variables and headers.
///
/// Commands and URLs are shown as they are written: what a variable in them stands for may be a secret.
fn question(server: &Server, resolved: &Entry, variables: &[String]) -> String {
    let file = plain::line(&server.file.display().to_string());
    let name = plain::line(&server.name);
    let mut text = format!("{file} says that `{name}` is\n\n");
    let mut row = |label: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {label:<10}{}", plain::line(value));
        }
    };
    match &server.entry {
        Entry::Start(written) => {
            let words = std::iter::once(&written.program).chain(&written.arguments);
            let words: Vec<_> = words.map(|word| quoted(word)).collect();
            row("command", &words.join(" "));
        }
        Entry::Remote(written) => row("URL", &written.url),
    }
    match resolved {
        Entry::Start(start) => {
            let names: Vec<_> = start.env.iter().map(|(name, _)| &**name).collect();
            row("sets", &names.join(", "));
            let folder = start.folder(server);
            row("in", &folder.display().to_string());
        }
        Entry::Remote(remote) => {
            let names: Vec<_> = remote.headers.iter().map(|(name, _)| &**name).collect();
            row("headers", &names.join(", "));
        }
    }
    row("reads", &variables.join(", "));
    text + "\n"
}

fn ask(question: &str, reader: &mut dyn BufRead, writer: &mut dyn Write) -> io::Result<bool> {
    write!(writer, "{}", plain::block(question))?;
    loop {
        write!(writer, "{} [y/n] ", style::paint(style::NAME, "Use it?"))?;
        writer.flush()?;
        let mut answer = String::new();
        if reader.read_line(&mut answer)? == 0 {
            writeln!(writer)?;
            return Ok(false);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

/// Returns a word as a shell would need it, so that one word cannot look like two.
pub(crate) fn quoted(word: &str) -> String {
    let harmless = |letter: char| letter.is_alphanumeric() || "-_./:=@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(harmless) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns what stands for a definition as it is written: every change is another one.
fn digest(server: &Server) -> String {
    let mut parts = vec![server.name.as_str(), server.entry.transport()];
    match &server.entry {
        Entry::Start(start) => {
            parts.push(&start.program);
            parts.push("arguments");
            parts.extend(start.arguments.iter().map(String::as_str));
            parts.extend(["folder", start.cwd.as_deref().unwrap_or_default()]);
            parts.extend(["file", start.env_file.as_deref().unwrap_or_default(), "env"]);
            let pairs = start.env.iter();
            parts.extend(pairs.flat_map(|(name, value)| [name.as_str(), value.reveal()]));
        }
        Entry::Remote(remote) => {
            parts.extend([&*remote.url, "headers"]);
            let pairs = remote.headers.iter();
            parts.extend(pairs.flat_map(|(name, value)| [name.as_str(), value.reveal()]));
            parts.push("variables");
            let named = remote.from_env.iter();
            parts.extend(
                named.flat_map(|(name, before, variable)| [name.as_str(), before, variable]),
            );
        }
    }
    state::digest(parts)
}

#[cfg(test)]
mod tests;
