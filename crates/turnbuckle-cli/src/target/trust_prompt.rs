//! The prompt before a server of a project is first used.
//!
//! It shows everything in the project that decides what runs or where requests go. The user's variables are shown by
//! name only. All values are sanitized, and continued lines are indented, so that no value can imitate another row.

use std::{fs, path::Path};

use turnbuckle_text::shell;

use crate::{
    output::{sanitize, wrap},
    target::config_files::{CommandEntry, ConfiguredServer, ServerEntry},
};

/// The destination of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptView {
    /// At a terminal of some width.
    Terminal(usize),
    /// In an error message, which may be logged.
    Message,
}

/// The definition of a server, for people.
#[derive(Debug)]
pub(super) struct TrustPrompt {
    /// The definition, with a row for each member.
    pub(super) rows: String,
    /// A warning about risky variables.
    pub(super) warning: Option<String>,
    /// The command or URL once more, if there are many rows.
    pub(super) summary: Option<String>,
}

/// With more lines, the first ones may be scrolled out of view.
const MAX_LINES_WITHOUT_SUMMARY: usize = 10;
/// The maximum number of characters in the summary.
const MAX_SUMMARY_CHARS: usize = 300;

/// The columns before the value of a row.
const INDENT: usize = 12;

impl TrustPrompt {
    /// Describes a server as its file defines it; `resolved` has the paths on this machine.
    pub(super) fn new(
        server: &ConfiguredServer,
        resolved: &ServerEntry,
        variables: &[String],
        view: PromptView,
    ) -> Self {
        let mut rows = PromptRows::new(view);
        let mut risky = Vec::new();
        match (&server.entry, resolved) {
            (ServerEntry::Command(written), ServerEntry::Command(command)) => {
                rows.command(server, written, command);
                let names = written.env.iter().chain(&command.lookup.env_of_file);
                let names = names.map(|(name, _)| name).chain(&written.env_vars);
                risky.extend(names.filter(|name| is_risky(name)));
            }
            (ServerEntry::Http(written), _) | (_, ServerEntry::Http(written)) => {
                rows.add("URL", &written.url);
                let names = written.headers.iter().map(|(name, _)| name);
                let names = names.chain(written.from_env.iter().map(|(name, ..)| name));
                let names: Vec<_> = names.map(String::as_str).collect();
                rows.add("headers", &names.join(", "));
            }
        }
        rows.add("reads", &variables.join(", "));
        risky.sort();
        risky.dedup();
        let lines = rows.text.lines().count() + risky.len();
        let summary = (lines > MAX_LINES_WITHOUT_SUMMARY).then(|| summary(server, resolved, view));
        let file = sanitize::line(&server.file.display().to_string());
        let name = sanitize::line(&server.name);
        Self {
            rows: format!("{file} defines `{name}`:\n\n{}\n", rows.text),
            warning: (!risky.is_empty()).then(|| warning(&risky)),
            summary,
        }
    }
}

/// Repeats the command or URL.
fn summary(server: &ConfiguredServer, resolved: &ServerEntry, view: PromptView) -> String {
    let mut rows = PromptRows::new(view);
    match (&server.entry, resolved) {
        (ServerEntry::Command(written), ServerEntry::Command(command)) => {
            rows.add("command", &shortened(&command_line(written)));
            rows.program(command);
        }
        (ServerEntry::Http(written), _) | (_, ServerEntry::Http(written)) => {
            rows.add("URL", &shortened(&written.url));
        }
    }
    rows.text
}

fn command_line(command: &CommandEntry) -> String {
    let words = std::iter::once(&command.program).chain(&command.arguments);
    let words: Vec<_> = words.map(|word| shell::quote(word)).collect();
    words.join(" ")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SUMMARY_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

fn warning(names: &[&String]) -> String {
    let names: Vec<_> = names.iter().map(|name| sanitize::line(name)).collect();
    format!(
        "it sets variables that can make programs run other code: {}",
        names.join(", ")
    )
}

/// The rows of a prompt.
struct PromptRows {
    text: String,
    view: PromptView,
}

impl PromptRows {
    fn new(view: PromptView) -> Self {
        Self {
            text: String::new(),
            view,
        }
    }

    /// Adds a row, unless its value is empty.
    fn add(&mut self, label: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let value = sanitize::line(value);
        let width = match self.view {
            PromptView::Terminal(width) => width,
            PromptView::Message => usize::MAX,
        };
        // Indented more than rows of a list.
        let lines = wrap::indented(&value, INDENT + 2, width);
        self.text += &format!("  {label:<10}{}", lines.trim_start_matches(' '));
    }

    /// Adds a row for each value; only the first has a label.
    fn list(&mut self, label: &str, values: impl IntoIterator<Item = String>) {
        for (number, value) in values.into_iter().enumerate() {
            self.add(if number == 0 { label } else { "" }, &value);
        }
    }

    fn program(&mut self, command: &CommandEntry) {
        if let Some(program) = &command.lookup.program {
            self.add("program", &program.display().to_string());
        }
    }

    fn command(
        &mut self,
        server: &ConfiguredServer,
        written: &CommandEntry,
        command: &CommandEntry,
    ) {
        self.add("command", &command_line(written));
        self.program(command);
        self.add("in", &command.folder(server).display().to_string());
        // As written: the value of a variable may be a secret of the user.
        let pairs = written.env.iter();
        self.list(
            "sets",
            pairs.map(|(name, value)| assignment(name, value.expose())),
        );
        if let Some(file) = &command.lookup.env_file {
            self.add("envFile", &file.display().to_string());
            let shows_all = self.view != PromptView::Message && is_below(file, &server.folder);
            let pairs = command.lookup.env_of_file.iter();
            let pairs = pairs.map(|(name, value)| {
                if shows_all || is_risky(name) {
                    assignment(name, value.expose())
                } else {
                    format!("{}=***", shell::quote(name))
                }
            });
            self.list("", pairs);
        }
    }
}

fn assignment(name: &str, value: &str) -> String {
    format!("{}={}", shell::quote(name), shell::quote(value))
}

/// Returns whether a file belongs to the project. The values in other files are the user's own.
fn is_below(file: &Path, folder: &Path) -> bool {
    match (fs::canonicalize(file), fs::canonicalize(folder)) {
        (Ok(file), Ok(folder)) => file.starts_with(folder),
        _ => false,
    }
}

/// Returns whether a variable can make a program run other code.
fn is_risky(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "BASH_ENV",
        "CLASSPATH",
        "COMSPEC",
        "DOTNET_STARTUP_HOOKS",
        "ENV",
        "GCONV_PATH",
        "IFS",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "PATH",
        "PATHEXT",
        "RUBYLIB",
        "RUBYOPT",
        "SHELLOPTS",
        "_JAVA_OPTIONS",
    ];
    // Variables of package managers decide where a program is downloaded from.
    const PREFIXES: &[&str] = &[
        "DYLD_",
        "GIT_",
        "LD_",
        "NODE_",
        "NPM_CONFIG_",
        "PERL5",
        "PIP_",
        "PYTHON",
        "UV_",
    ];
    // Windows and npm ignore case.
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_select_code_are_detected() {
        for name in [
            "PATH",
            "Path",
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "BASH_ENV",
            "ENV",
            "GIT_SSH_COMMAND",
            "PERL5OPT",
            "RUBYOPT",
            "JAVA_TOOL_OPTIONS",
            "npm_config_registry",
        ] {
            assert!(is_risky(name), "{name}");
        }
        for name in ["API_KEY", "MY_PATH", "ENVIRONMENT", "OLD_VALUE", "HOME"] {
            assert!(!is_risky(name), "{name}");
        }
    }
}
