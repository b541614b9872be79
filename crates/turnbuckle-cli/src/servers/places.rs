//! Which files there are, the one that counts first: the user's own, then those of the project, the nearest folder first.
//!
//! A project may come from a stranger, so it never replaces a server that the user has configured.

use std::path::{Path, PathBuf};

use super::source::{Scope, Source};
use crate::environment::Environment;

/// A table of servers in a file.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) source: Source,
    pub(super) scope: Scope,
    pub(super) file: PathBuf,
    /// The folder that the file speaks about.
    pub(super) folder: PathBuf,
    /// The names that lead to the table.
    pub(super) table: Vec<String>,
    /// Whether it is odd if the file is not there.
    pub(super) expected: bool,
    /// Whether the file counts only if it and its folders belong to the user.
    pub(super) checks_owner: bool,
}

/// Files of a project, below each of its folders.
const PROJECT: &[(Source, &str, &str)] = &[
    (Source::Project, ".mcp.json", "mcpServers"),
    (Source::VsCode, ".vscode/mcp.json", "servers"),
    (Source::Cursor, ".cursor/mcp.json", "mcpServers"),
    (Source::Gemini, ".gemini/settings.json", "mcpServers"),
];

/// Returns the one file that was named.
pub(super) fn given(environment: &Environment, file: &Path) -> Vec<Place> {
    let file = environment.cwd.join(file);
    let folder = file.parent().unwrap_or(&environment.cwd).to_owned();
    let place = |table: &str| Place {
        source: Source::Given,
        // Naming a file is not reading it: its commands are shown before they run.
        scope: Scope::Project,
        file: file.clone(),
        folder: folder.clone(),
        table: vec![table.to_owned()],
        expected: true,
        checks_owner: false,
    };
    ["mcpServers", "servers", "mcp_servers"].map(place).into()
}

/// Returns every place that is known.
pub(super) fn all(environment: &Environment) -> Vec<Place> {
    let folders = || folders(&environment.cwd);
    let of_claude_code = folders().filter_map(|folder| of_claude_code(environment, folder));
    let mut places: Vec<_> = of_claude_code.collect();
    places.extend(of_user(environment));
    let users = places.len();
    for place in folders().flat_map(of_project) {
        // A project folder can be the home folder, whose files are the user's own.
        if !places[..users].iter().any(|user| user.file == place.file) {
            places.push(place);
        }
    }
    places
}

/// From here up to the root of the repository; only here if there is none.
fn folders(cwd: &Path) -> impl Iterator<Item = &Path> {
    let root = cwd.ancestors().find(|folder| folder.join(".git").exists());
    let root = root.unwrap_or(cwd);
    cwd.ancestors()
        .take_while(move |folder| folder.starts_with(root))
}

fn of_project(folder: &Path) -> impl Iterator<Item = Place> {
    PROJECT.iter().map(|(source, file, table)| Place {
        source: *source,
        scope: Scope::Project,
        file: folder.join(file),
        folder: folder.to_owned(),
        table: vec![(*table).to_owned()],
        expected: false,
        checks_owner: true,
    })
}

/// What the user told Claude Code about one project, in a file of their own.
fn of_claude_code(environment: &Environment, folder: &Path) -> Option<Place> {
    Some(Place {
        source: Source::ClaudeCode,
        scope: Scope::User,
        file: environment.below_home(".claude.json")?,
        folder: folder.to_owned(),
        table: vec![
            "projects".to_owned(),
            folder.to_str()?.to_owned(),
            "mcpServers".to_owned(),
        ],
        expected: false,
        checks_owner: false,
    })
}

fn of_user(environment: &Environment) -> Vec<Place> {
    let config = |file: &str| environment.config_folder().map(|folder| folder.join(file));
    let codex = environment.var("CODEX_HOME").map(PathBuf::from);
    let codex = codex.or_else(|| environment.below_home(".codex"));
    let files = [
        (
            Source::ClaudeCode,
            environment.below_home(".claude.json"),
            "mcpServers",
        ),
        (
            Source::ClaudeDesktop,
            config("Claude/claude_desktop_config.json"),
            "mcpServers",
        ),
        (Source::VsCode, config("Code/User/mcp.json"), "servers"),
        (
            Source::Cursor,
            environment.below_home(".cursor/mcp.json"),
            "mcpServers",
        ),
        (
            Source::Codex,
            codex.map(|folder| folder.join("config.toml")),
            "mcp_servers",
        ),
        (
            Source::Gemini,
            environment.below_home(".gemini/settings.json"),
            "mcpServers",
        ),
    ];
    let place = |(source, file, table): (Source, Option<PathBuf>, &str)| {
        Some(Place {
            source,
            scope: Scope::User,
            file: file?,
            folder: environment.cwd.clone(),
            table: vec![table.to_owned()],
            expected: false,
            checks_owner: false,
        })
    };
    files.into_iter().filter_map(place).collect()
}
