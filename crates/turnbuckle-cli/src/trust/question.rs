//! What the user is shown before a project's server is first used.
//!
//! Everything that decides what runs or where requests go, as far as the project decides it. What comes from the user's
//! variables is shown by its name only. All of it is text of a stranger, so it is made harmless for a terminal, and a line
//! that continues is indented: no value can pass for another row.

use std::fs;
use std::path::Path;

use super::quoted;
use crate::output::{plain, wrap};
use crate::servers::{Entry, Server, Start};

/// Where the question appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// At a terminal of some width.
    Terminal(usize),
    /// In an error message, which may end up in a log.
    Message,
}

/// The definition of a server for people.
#[derive(Debug)]
pub(super) struct Question {
    /// The definition, a row for each member.
    pub(super) rows: String,
    /// Why it needs a second look, if it does.
    pub(super) warning: Option<String>,
    /// What runs, or where requests go, once more if the rows are many.
    pub(super) summary: Option<String>,
}

/// Lines of a definition beyond which the first ones may be out of sight at the question.
const MOST_LINES: usize = 10;
/// Letters of a command that are repeated.
const LONGEST_REPEATED: usize = 300;

/// Columns before the value of a row.
const INDENT: usize = 12;

impl Question {
    /// Describes the server as its file defines it; `resolved` is what that leads to here.
    pub(super) fn new(server: &Server, resolved: &Entry, variables: &[String], view: View) -> Self {
        let mut rows = Rows::new(view);
        let mut risky = Vec::new();
        match (&server.entry, resolved) {
            (Entry::Start(written), Entry::Start(start)) => {
                rows.command(server, written, start);
                let names = written.env.iter().chain(&start.lookup.env_of_file);
                let names = names.map(|(name, _)| name).chain(&written.env_vars);
                risky.extend(names.filter(|name| is_risky(name)));
            }
            (Entry::Remote(written), _) | (_, Entry::Remote(written)) => {
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
        let summary = (lines > MOST_LINES).then(|| summary(server, resolved, view));
        let file = plain::line(&server.file.display().to_string());
        let name = plain::line(&server.name);
        Self {
            rows: format!("{file} says that `{name}` is\n\n{}\n", rows.text),
            warning: (!risky.is_empty()).then(|| warning(&risky)),
            summary,
        }
    }
}

/// Repeats what decides most.
fn summary(server: &Server, resolved: &Entry, view: View) -> String {
    let mut rows = Rows::new(view);
    match (&server.entry, resolved) {
        (Entry::Start(written), Entry::Start(start)) => {
            rows.add("command", &shortened(&command_line(written)));
            rows.program(start);
        }
        (Entry::Remote(written), _) | (_, Entry::Remote(written)) => {
            rows.add("URL", &shortened(&written.url));
        }
    }
    rows.text
}

fn command_line(start: &Start) -> String {
    let words = std::iter::once(&start.program).chain(&start.arguments);
    let words: Vec<_> = words.map(|word| quoted(word)).collect();
    words.join(" ")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_REPEATED) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

fn warning(names: &[&String]) -> String {
    let names: Vec<_> = names.iter().map(|name| plain::line(name)).collect();
    format!(
        "it sets variables that can make other code run: {}",
        names.join(", ")
    )
}

/// The rows of a question.
struct Rows {
    text: String,
    view: View,
}

impl Rows {
    fn new(view: View) -> Self {
        Self {
            text: String::new(),
            view,
        }
    }

    /// Adds a row, unless there is nothing in it.
    fn add(&mut self, label: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let value = plain::line(value);
        let width = match self.view {
            View::Terminal(width) => width,
            View::Message => usize::MAX,
        };
        // Further in than the next row of a list, which it is not.
        let lines = wrap::indented(&value, INDENT + 2, width);
        self.text += &format!("  {label:<10}{}", lines.trim_start_matches(' '));
    }

    /// Adds a row for each value; only the first one is labelled.
    fn list(&mut self, label: &str, values: impl IntoIterator<Item = String>) {
        for (number, value) in values.into_iter().enumerate() {
            self.add(if number == 0 { label } else { "" }, &value);
        }
    }

    fn program(&mut self, start: &Start) {
        if let Some(program) = &start.lookup.program {
            self.add("program", &program.display().to_string());
        }
    }

    fn command(&mut self, server: &Server, written: &Start, start: &Start) {
        self.add("command", &command_line(written));
        self.program(start);
        self.add("in", &start.folder(server).display().to_string());
        // As they are written: what a variable in them stands for may be a secret of the user's.
        let pairs = written.env.iter();
        self.list(
            "sets",
            pairs.map(|(name, value)| assignment(name, value.reveal())),
        );
        if let Some(file) = &start.lookup.env_file {
            self.add("envFile", &file.display().to_string());
            let shows_all = self.view != View::Message && is_below(file, &server.folder);
            let pairs = start.lookup.env_of_file.iter();
            let pairs = pairs.map(|(name, value)| match shows_all || is_risky(name) {
                true => assignment(name, value.reveal()),
                false => format!("{}=***", quoted(name)),
            });
            self.list("", pairs);
        }
    }
}

fn assignment(name: &str, value: &str) -> String {
    format!("{}={}", quoted(name), quoted(value))
}

/// Says whether a file came with the project. One from elsewhere is the user's own, and so are its values.
fn is_below(file: &Path, folder: &Path) -> bool {
    match (fs::canonicalize(file), fs::canonicalize(folder)) {
        (Ok(file), Ok(folder)) => file.starts_with(folder),
        _ => false,
    }
}

/// Says whether a variable can make a program run other code than its name promises.
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
    // Those of package managers decide where a program is fetched from.
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
    // Windows and npm know no difference between letters of either case.
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_decide_which_code_runs_are_known() {
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
