//! Asks for approval before a server of a project is first used.
//!
//! A project may come from another person: a command in its configuration would run as the user, and a URL would
//! receive the user's arguments, tokens and variables. So each server is shown and confirmed once. The approval is
//! stored for this file and exactly this definition, with the files, variables and hosts it refers to: see
//! [`approval_digest`]. The content of the program and of files that it reads is not included: the user is not asked
//! again when they change.

use std::{
    fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_auth::Secret;
use turnbuckle_text::url::HttpUrl;

use super::trust_prompt::{PromptView, TrustPrompt};
use crate::{
    environment::Environment,
    error::{CliError, Result, warning},
    output::{sanitize, style},
    state_files,
    target::config_files::{ConfigScope, ConfiguredServer, ServerEntry},
};

/// The ways to ask the user.
pub(crate) enum ConfirmMode<'a> {
    /// `--yes`: approve without asking.
    Yes,
    /// The user cannot be asked.
    NoTerminal,
    /// Ask at a terminal.
    Terminal(&'a mut dyn BufRead, &'a mut dyn Write),
}

/// Asks for approval of a configured server, unless it is approved already.
pub(crate) fn ensure_trusted(
    server: &ConfiguredServer,
    resolved: &ServerEntry,
    environment: &Environment,
    confirm_mode: ConfirmMode<'_>,
) -> Result {
    if matches!(confirm_mode, ConfirmMode::Yes) || is_approved(server, resolved, environment) {
        return Ok(());
    }
    let variables = server.variables(environment);
    let prompt = |view| TrustPrompt::new(server, resolved, &variables, view);
    let ConfirmMode::Terminal(reader, writer) = confirm_mode else {
        return Err(no_terminal_error(&prompt(PromptView::Message)));
    };
    let view = PromptView::Terminal(environment.terminal.width);
    if !confirm(&prompt(view), reader, writer)? {
        let name = sanitize::line(&server.name);
        return Err(CliError::could_not_run(format!(
            "`{name}` was not approved"
        )));
    }
    let file = TrustFile::for_user(environment);
    let (digest, written) = (approval_digest(server, resolved), definition_digest(server));
    let saved = file.add(&server.file, &digest, &written);
    saved.map_err(|error| {
        CliError::could_not_run(format!("cannot store the approval: {error}"))
            .hint("use `--yes` to continue without storing it")
    })
}

/// Returns whether a server can be used without asking: it is the user's own, or it was approved.
pub(crate) fn is_approved(
    server: &ConfiguredServer,
    resolved: &ServerEntry,
    environment: &Environment,
) -> bool {
    server.scope == ConfigScope::User
        || TrustFile::for_user(environment)
            .contains(&server.file, &approval_digest(server, resolved))
}

/// Returns whether the written definition was approved, even if the paths in it have changed. Accesses no file that
/// the definition names.
pub(crate) fn is_definition_trusted(server: &ConfiguredServer, environment: &Environment) -> bool {
    server.scope == ConfigScope::User
        || TrustFile::for_user(environment)
            .contains_definition(&server.file, &definition_digest(server))
}

fn no_terminal_error(prompt: &TrustPrompt) -> CliError {
    let rows = &prompt.rows;
    let warning = prompt.warning.as_ref();
    let warning = warning.map(|text| format!("warning: {text}\n\n"));
    let warning = warning.unwrap_or_default();
    CliError::could_not_run(format!(
        "{rows}{warning}this server is defined by a project and must be approved at a terminal"
    ))
    .hint("check the definition, then use `--yes`, or approve it once at a terminal")
}

fn confirm(
    prompt: &TrustPrompt,
    reader: &mut dyn BufRead,
    writer: &mut dyn Write,
) -> io::Result<bool> {
    write!(writer, "{}", sanitize::block(&prompt.rows))?;
    // Last, so that a long definition does not scroll it out of view.
    if let Some(text) = &prompt.warning {
        writeln!(writer, "{}", warning(text))?;
    }
    if let Some(rows) = &prompt.summary {
        writeln!(writer, "{}", sanitize::block(rows))?;
    }
    loop {
        write!(writer, "{} [y/n] ", style::styled(style::NAME, "Use it?"))?;
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

/// Returns the digest of a definition and of what it refers to.
///
/// For a command: all members as written, the file of the program, its directory, the variables in its `envFile`. For
/// a URL: all members as written, and the resolved host. Values of the user's variables are not included.
pub(crate) fn approval_digest(server: &ConfiguredServer, resolved: &ServerEntry) -> String {
    // The debug form also distinguishes paths that are not Unicode.
    let leads_to = match resolved {
        ServerEntry::Command(command) => json!({
            "program": format!("{:?}", command.lookup.program),
            "folder": format!("{:?}", command.folder(server)),
            "envFile": format!("{:?}", command.lookup.env_file),
            "envOfFile": pairs_json(&command.lookup.env_of_file),
        }),
        ServerEntry::Http(http_entry) => json!({ "origin": origin(&http_entry.url) }),
    };
    let mut all = definition_json(server);
    all["leadsTo"] = leads_to;
    state_files::digest([all.to_string().as_str()])
}

/// Returns the digest of a definition as written.
fn definition_digest(server: &ConfiguredServer) -> String {
    state_files::digest([definition_json(server).to_string().as_str()])
}

fn definition_json(server: &ConfiguredServer) -> Value {
    let members = match &server.entry {
        ServerEntry::Command(command) => json!({
            "command": command.program,
            "args": command.arguments,
            "cwd": command.cwd,
            "envFile": command.env_file,
            "env": pairs_json(&command.env),
            "envVars": command.env_vars,
        }),
        ServerEntry::Http(http_entry) => json!({
            "url": http_entry.url,
            "headers": pairs_json(&http_entry.headers),
            "headersFromEnv": http_entry.from_env,
        }),
    };
    json!({
        "file": format!("{:?}", server.file),
        "name": server.name,
        "transport": server.entry.transport(),
        "written": members,
    })
}

fn pairs_json(pairs: &[(String, Secret)]) -> Value {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| json!([name, value.expose()]))
        .collect()
}

/// Returns the scheme, host and port of a URL, or all of a text that is not a URL.
fn origin(url: &str) -> &str {
    HttpUrl::parse(url).map_or(url, |url| url.origin)
}

/// The file of approved definitions.
#[derive(Debug)]
pub(crate) struct TrustFile {
    file: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFileContent {
    #[serde(rename = "agreed")]
    entries: Vec<TrustedEntry>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct TrustedEntry {
    file: PathBuf,
    digest: String,
    /// The digest of the definition as written; absent in files of earlier versions.
    #[serde(default, rename = "written", skip_serializing_if = "Option::is_none")]
    definition: Option<String>,
}

impl TrustFile {
    /// Returns the file of this user.
    pub(crate) fn for_user(environment: &Environment) -> Self {
        let folder = state_files::dir(environment);
        Self {
            file: folder.map(|folder| folder.join("trust.json")),
        }
    }

    /// Returns whether exactly this digest was approved.
    pub(crate) fn contains(&self, file: &Path, digest: &str) -> bool {
        let mut entries = self.read().entries.into_iter();
        entries.any(|entry| entry.file == file && entry.digest == digest)
    }

    /// Returns whether a definition may have been approved that is written like this.
    pub(super) fn contains_definition(&self, file: &Path, definition: &str) -> bool {
        let mut entries = self.read().entries.into_iter();
        entries.any(|entry| {
            entry.file == file
                && entry
                    .definition
                    .as_deref()
                    .is_none_or(|known| known == definition)
        })
    }

    /// Adds an approved definition.
    pub(super) fn add(&self, file: &Path, digest: &str, definition: &str) -> io::Result<()> {
        let Some(path) = &self.file else {
            return Err(io::Error::other("no home directory"));
        };
        let mut all = self.read();
        all.entries.push(TrustedEntry {
            file: file.to_owned(),
            digest: digest.to_owned(),
            definition: Some(definition.to_owned()),
        });
        state_files::write_private(path, &serde_json::to_vec_pretty(&all)?)
    }

    /// Reads the file; an invalid file counts as empty, so the prompt is repeated.
    fn read(&self) -> TrustFileContent {
        let text = self.file.as_ref().and_then(|file| fs::read(file).ok());
        let content = text.and_then(|text| serde_json::from_slice(&text).ok());
        content.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
