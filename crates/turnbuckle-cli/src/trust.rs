//! Asks before something that came with a project is first used.
//!
//! A file of a project may come from a stranger: a command in it would run as the user, and a URL would get the user's arguments,
//! tokens and variables. So each server is shown and asked for once. The answer is remembered for this file and exactly
//! this definition, with the files, variables and hosts that it leads to: [`digest`]. The content of the program is not part
//! of it, nor that of any file that the program reads: when they change, the user is not asked again.

mod memory;
mod question;

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use crate::environment::Environment;
use crate::failure::{Failure, Result, warning};
use crate::output::{plain, style};
use crate::secret::Secret;
use crate::servers::{Entry, Scope, Server};
use crate::state;
pub(crate) use memory::Memory;
use question::{Question, View};

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
    if matches!(asking, Asking::Yes) || is_approved(server, resolved, environment) {
        return Ok(());
    }
    let variables = server.variables(environment);
    let question = |view| Question::new(server, resolved, &variables, view);
    let Asking::Terminal(reader, writer) = asking else {
        return Err(no_terminal(&question(View::Message)));
    };
    let view = View::Terminal(environment.terminal.width);
    if !ask(&question(view), reader, writer)? {
        let name = plain::line(&server.name);
        return Err(Failure::not_asked(format!("`{name}` was not approved")));
    }
    let memory = Memory::of(environment);
    let (digest, written) = (digest(server, resolved), written_digest(server));
    let remembered = memory.remember(&server.file, &digest, &written);
    remembered.map_err(|error| {
        Failure::not_asked(format!("the answer cannot be remembered: {error}"))
            .hint("use `--yes` to go on without")
    })
}

/// Says whether a server can be used without asking: it is the user's own, or the user agreed to it.
pub(crate) fn is_approved(server: &Server, resolved: &Entry, environment: &Environment) -> bool {
    server.scope == Scope::User
        || Memory::of(environment).knows(&server.file, &digest(server, resolved))
}

/// Says whether the user agreed to a definition as it is written, whatever it leads to by now. No file that the definition
/// names is looked at.
pub(crate) fn is_known(server: &Server, environment: &Environment) -> bool {
    server.scope == Scope::User
        || Memory::of(environment).knows_written(&server.file, &written_digest(server))
}

fn no_terminal(question: &Question) -> Failure {
    let rows = &question.rows;
    let warning = question.warning.as_ref();
    let warning = warning.map(|text| format!("warning: {text}\n\n"));
    let warning = warning.unwrap_or_default();
    Failure::not_asked(format!(
        "{rows}{warning}it came with a project, and there is no terminal to ask whether to use it"
    ))
    .hint("look at it, then use `--yes`, or answer once at a terminal")
}

fn ask(question: &Question, reader: &mut dyn BufRead, writer: &mut dyn Write) -> io::Result<bool> {
    write!(writer, "{}", plain::block(&question.rows))?;
    // Last, so that a long definition cannot move it out of sight.
    if let Some(text) = &question.warning {
        writeln!(writer, "{}", warning(text))?;
    }
    if let Some(rows) = &question.summary {
        writeln!(writer, "{}", plain::block(rows))?;
    }
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

/// Returns what stands for a definition and what it leads to; every change is another one.
///
/// A command: all members as they are written, the file that the program is, its folder, the variables of its `envFile`. A
/// URL: all members as they are written, and the host that it leads to. Values of the user's variables are not part of it.
fn digest(server: &Server, resolved: &Entry) -> String {
    // The debug form of a path keeps what is not Unicode apart.
    let leads_to = match resolved {
        Entry::Start(start) => json!({
            "program": format!("{:?}", start.lookup.program),
            "folder": format!("{:?}", start.folder(server)),
            "envFile": format!("{:?}", start.lookup.env_file),
            "envOfFile": pairs(&start.lookup.env_of_file),
        }),
        Entry::Remote(remote) => json!({ "origin": origin(&remote.url) }),
    };
    let mut all = written(server);
    all["leadsTo"] = leads_to;
    state::digest([all.to_string().as_str()])
}

/// Returns what stands for a definition as it is written.
fn written_digest(server: &Server) -> String {
    state::digest([written(server).to_string().as_str()])
}

fn written(server: &Server) -> Value {
    let members = match &server.entry {
        Entry::Start(start) => json!({
            "command": start.program,
            "args": start.arguments,
            "cwd": start.cwd,
            "envFile": start.env_file,
            "env": pairs(&start.env),
            "envVars": start.env_vars,
        }),
        Entry::Remote(remote) => json!({
            "url": remote.url,
            "headers": pairs(&remote.headers),
            "headersFromEnv": remote.from_env,
        }),
    };
    json!({
        "file": format!("{:?}", server.file),
        "name": server.name,
        "transport": server.entry.transport(),
        "written": members,
    })
}

fn pairs(pairs: &[(String, Secret)]) -> Value {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| json!([name, value.reveal()]))
        .collect()
}

/// Returns a URL without what stands behind its host and port.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#', '\\']);
    &url[..end.map_or(url.len(), |end| host + end)]
}

#[cfg(test)]
mod tests;
