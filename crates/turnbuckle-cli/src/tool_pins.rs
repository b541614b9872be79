//! Detects changed tools, and asks before one is called.
//!
//! The first definition of each tool is stored per server, as digests. The identity of a server comes from the
//! command line and the configuration, never from the server itself.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use clap::ValueEnum as _;
use serde::{Deserialize, Serialize};
use turnbuckle_client::{ToolDigest, ToolFingerprint};
use turnbuckle_protocol::types::Tool;

use crate::{
    context::CommandContext,
    elicitation::{
        TerminalElicitation,
        form_prompt::{PromptError, Prompter},
    },
    error::{CliError, Result, warning},
    output::{sanitize, style},
    state_files,
    target::{CliTarget, config_files},
};

/// The maximum number of changed tools in a warning.
const MAX_LISTED_CHANGES: usize = 10;

/// The stored tools of a server.
pub(crate) struct ToolPins<'a> {
    target: &'a CliTarget,
    context: &'a CommandContext,
    pin_file: PinFile,
}

impl<'a> ToolPins<'a> {
    /// Opens the stored tools of a server.
    pub(crate) fn new(target: &'a CliTarget, context: &'a CommandContext) -> Self {
        let folder = state_files::dir(&context.environment);
        Self {
            target,
            context,
            pin_file: PinFile::new(folder, &server_identity(target, context)),
        }
    }

    /// Returns whether a tool is stored.
    pub(crate) fn contains(&self, tool: &str) -> bool {
        self.pin_file.read().contains(tool)
    }

    /// Warns once about tools that have changed. With `--yes` their new definitions are approved.
    pub(crate) fn report_changes(&self, tools: &[Tool]) {
        let changed = self.update(|pins| {
            let mut changed = Vec::new();
            let mut names = std::collections::HashSet::new();
            // Of two tools with the same name, the first is called.
            for tool in tools.iter().filter(|tool| names.insert(&tool.name)) {
                changed.extend(pins.observe(tool).filter(|changed| !changed.reported));
                if self.context.options.yes {
                    pins.approve(tool);
                }
            }
            changed
        });
        if !changed.is_empty() {
            self.context.ui.print(&warning(&changes_text(&changed)));
        }
    }

    /// Asks the user before a tool is called that has changed since it was approved.
    pub(crate) async fn ensure_approved(&self, tool: &Tool, shown: &str) -> Result {
        let Some(changed) = self.update(|pins| pins.observe(tool)) else {
            return Ok(());
        };
        if self.context.options.yes {
            self.context.ui.print(&warning(&change_text(&changed)));
        } else if self.context.environment.terminal.is_interactive {
            self.confirm(&changed, shown).await?;
        } else {
            return Err(self.no_terminal_error(&changed));
        }
        self.update(|pins| pins.approve(tool));
        Ok(())
    }

    async fn confirm(&self, changed: &ToolChange, shown: &str) -> Result {
        let questions =
            TerminalElicitation::new(self.target.label(), true, self.context.ui.clone());
        let (shown, sentence) = (style::strip(shown), change_text(changed));
        let agreed = questions.prompt(move |prompter| confirm_call(&shown, &sentence, prompter));
        match agreed.await {
            Some(true) => Ok(()),
            _ => Err(CliError::could_not_run(format!(
                "`{}` was not called",
                changed.tool
            ))),
        }
    }

    fn no_terminal_error(&self, changed: &ToolChange) -> CliError {
        let message = format!("{}; confirmation needs a terminal", change_text(changed));
        let inspect = self.target.command_line("tools", &changed.tool);
        CliError::could_not_run(message)
            .hint(format!("inspect it with `{inspect}`, then use `--yes`"))
    }

    /// Updates the stored tools. Errors do not stop the command.
    fn update<T>(&self, change: impl FnOnce(&mut PinnedTools) -> T) -> T {
        let (outcome, written) = self.pin_file.update(change);
        if let Err(error) = written
            && self.context.options.verbose
        {
            let message = format!("cannot store the tool definitions: {error}");
            self.context.ui.note("*", &message);
        }
        outcome
    }
}

fn confirm_call(shown: &str, sentence: &str, prompter: &mut Prompter<'_>) -> io::Result<bool> {
    let mut answer = || {
        prompter.quote(shown)?;
        prompter.print(&format!("{}\n", sanitize::line(sentence)))?;
        loop {
            let prompt = style::styled(style::NAME, "Call it?");
            match prompter
                .read_answer(&format!("{prompt} [y/n] "))?
                .to_lowercase()
                .as_str()
            {
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    };
    match answer() {
        Err(PromptError::Io(error)) => Err(error),
        Err(PromptError::Declined | PromptError::Cancelled) => Ok(false),
        Ok(agreed) => Ok(agreed),
    }
}

fn changes_text(changed: &[ToolChange]) -> String {
    if let [changed] = changed {
        return change_text(changed);
    }
    let mut text = format!("{} tools have changed", changed.len());
    for changed in &changed[..changed.len().min(MAX_LISTED_CHANGES)] {
        text += &format!(
            "\n  {}: {}",
            sanitize::line(&changed.tool),
            changed_members(changed)
        );
    }
    if changed.len() > MAX_LISTED_CHANGES {
        text += &format!("\n  and {} more", changed.len() - MAX_LISTED_CHANGES);
    }
    text
}

fn change_text(changed: &ToolChange) -> String {
    let tool = sanitize::line(&changed.tool);
    let members = changed_members(changed);
    format!("`{tool}` has changed: {members}")
}

fn changed_members(changed: &ToolChange) -> String {
    let word = |member: &&'static str| match *member {
        "inputSchema" => "input schema",
        "outputSchema" => "output schema",
        other => other,
    };
    let words: Vec<_> = changed.members.iter().map(word).collect();
    words.join(", ")
}

/// Returns the identity of a server: its name or address, and the requested era, because definitions may differ by
/// era.
fn server_identity(target: &CliTarget, context: &CommandContext) -> String {
    let environment = &context.environment;
    let lossy = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut words = match target {
        CliTarget::Url(url) => vec!["url".to_owned(), url.clone()],
        CliTarget::Unix(path) => vec!["unix".to_owned(), lossy(&environment.cwd.join(path))],
        // The same command may start another program in another directory.
        CliTarget::Command(words) => {
            let identity = ["command".to_owned(), lossy(&environment.cwd)];
            identity.into_iter().chain(words.iter().cloned()).collect()
        }
        CliTarget::Named(name) => {
            let found = config_files::find_servers(environment, context.options.config.as_deref());
            match found.find_by_name(name) {
                Some(server) => vec!["named".to_owned(), lossy(&server.file), server.name.clone()],
                None => vec!["named".to_owned(), name.clone()],
            }
        }
    };
    let era = context.options.era.to_possible_value();
    words.extend(era.map(|era| era.get_name().to_owned()));
    state_files::digest(words.iter().map(String::as_str))
}

/// The maximum number of tools per server. The oldest stay, so that a flood of tools cannot displace them.
const MAX_TOOLS: usize = 2_000;
/// The maximum number of servers. The least recently used is removed.
const MAX_SERVERS: usize = 1_000;
/// A longer tool name is stored as its digest.
const MAX_NAME_BYTES: usize = 128;
/// The interval at which the file of a server in use gets a new modification time.
const TOUCH_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The file with the tools of one server.
///
/// Concurrent commands may write it: each reads it first, and replaces it atomically. If one update is lost, the next
/// command repeats it.
#[derive(Debug)]
pub(crate) struct PinFile {
    file: Option<PathBuf>,
}

/// The stored tools by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PinnedTools {
    tools: BTreeMap<String, PinnedTool>,
}

/// A stored tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PinnedTool {
    /// The definition when the tool was first seen, or when the user last approved it.
    #[serde(rename = "agreed")]
    approved: ToolFingerprint,
    /// The changed definition that the user was warned about.
    #[serde(default, rename = "told", skip_serializing_if = "Option::is_none")]
    reported: Option<ToolDigest>,
}

/// A difference between a tool and its approved definition.
#[derive(Debug, PartialEq)]
pub(crate) struct ToolChange {
    /// The name of the tool.
    pub(crate) tool: String,
    /// The members that were added, removed or changed.
    pub(crate) members: Vec<&'static str>,
    /// True if the user was warned about this change.
    pub(crate) reported: bool,
}

impl PinFile {
    /// Returns the file of a server in the state directory.
    pub(crate) fn new(folder: Option<PathBuf>, server: &str) -> Self {
        Self {
            file: folder.map(|folder| folder.join("tools").join(format!("{server}.json"))),
        }
    }

    /// Reads the stored tools; empty if the file is missing or invalid.
    pub(crate) fn read(&self) -> PinnedTools {
        let text = self.file.as_ref().and_then(|file| fs::read(file).ok());
        let tools = text.and_then(|text| serde_json::from_slice(&text).ok());
        tools.unwrap_or_default()
    }

    /// Changes the stored tools. Without a state directory nothing is stored.
    pub(crate) fn update<T>(
        &self,
        change: impl FnOnce(&mut PinnedTools) -> T,
    ) -> (T, io::Result<()>) {
        let before = self.read();
        let mut now = before.clone();
        let outcome = change(&mut now);
        let Some(file) = &self.file else {
            return (outcome, Ok(()));
        };
        let written = if now == before {
            touch(file)
        } else {
            write(file, &now)
        };
        (outcome, written)
    }
}

impl PinnedTools {
    /// Returns whether a tool is stored.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tools.contains_key(&key(name))
    }

    /// Stores a new tool; returns the difference if a stored one has changed.
    pub(crate) fn observe(&mut self, tool: &Tool) -> Option<ToolChange> {
        let now = ToolFingerprint::for_tool(tool);
        let Some(known) = self.tools.get_mut(&key(&tool.name)) else {
            self.approve(tool);
            return None;
        };
        let digest = now.digest();
        if known.approved.digest() == digest {
            known.reported = None;
            return None;
        }
        Some(ToolChange {
            tool: tool.name.clone(),
            members: now.changes_since(&known.approved),
            reported: known.reported.replace(digest) == Some(digest),
        })
    }

    /// Stores the current definition of a tool, if it is stored already or there is room.
    pub(crate) fn approve(&mut self, tool: &Tool) {
        let known = PinnedTool {
            approved: ToolFingerprint::for_tool(tool),
            reported: None,
        };
        let full = self.tools.len() >= MAX_TOOLS;
        if !full || self.contains(&tool.name) {
            self.tools.insert(key(&tool.name), known);
        }
    }
}

fn key(name: &str) -> String {
    if name.len() > MAX_NAME_BYTES {
        format!("sha256:{}", state_files::digest([name]))
    } else {
        name.to_owned()
    }
}

fn write(file: &Path, tools: &PinnedTools) -> io::Result<()> {
    let new = !file.exists();
    state_files::write_private(file, &serde_json::to_vec_pretty(tools)?)?;
    match file.parent() {
        Some(folder) if new => remove_oldest(folder),
        _ => Ok(()),
    }
}

/// Updates the modification time, so that the file is not removed as the oldest.
fn touch(file: &Path) -> io::Result<()> {
    let Ok(written) = fs::metadata(file).and_then(|about| about.modified()) else {
        return Ok(());
    };
    match written.elapsed() {
        Ok(age) if age > TOUCH_INTERVAL => {
            let file = File::options().append(true).open(file)?;
            file.set_modified(SystemTime::now())
        }
        _ => Ok(()),
    }
}

fn remove_oldest(folder: &Path) -> io::Result<()> {
    let files = fs::read_dir(folder)?.flatten();
    let dated = files.filter_map(|file| {
        let written = file.metadata().ok()?.modified().ok()?;
        Some((written, file.path()))
    });
    let mut dated: Vec<_> = dated.collect();
    dated.sort();
    let many = dated.len().saturating_sub(MAX_SERVERS);
    dated[..many]
        .iter()
        .try_for_each(|(_, file)| fs::remove_file(file))
}

#[cfg(test)]
mod tests;
