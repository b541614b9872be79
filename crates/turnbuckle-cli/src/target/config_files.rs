//! The configuration files of other programs, and the servers in them.
//!
//! Files of the user come first, then those of the project, nearest directory first: a project may not replace a
//! server of the user. In a directory that others can write to, such as `/tmp`, any user can leave a project file. So
//! a project file is used only if it and its directories belong to the user, as git requires of a repository. Files
//! are never changed, and variables are expanded only when a server is used.

use std::{
    fs::Metadata,
    path::{Path, PathBuf},
};

pub(crate) use super::entry::{CommandEntry, HttpEntry, ServerEntry};
use super::read;
use crate::environment::Environment;

/// The servers in all files that were read.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredServers {
    /// The servers. Of two with the same name, the one that is used comes first.
    pub(crate) servers: Vec<ConfiguredServer>,
    /// Files and entries that could not be read.
    pub(crate) warnings: Vec<String>,
}

/// A server in a configuration file.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredServer {
    /// The name in the file.
    pub(crate) name: String,
    /// The program that the file belongs to.
    pub(crate) source: ConfigSource,
    /// The author of the file.
    pub(crate) scope: ConfigScope,
    /// The path of the file.
    pub(crate) file: PathBuf,
    /// The directory of the project; for a file of the user, the current directory.
    pub(crate) folder: PathBuf,
    /// The entry, with unexpanded variables.
    pub(crate) entry: ServerEntry,
}

/// Reads the servers of one file, or of all known files.
pub(crate) fn find_servers(environment: &Environment, named: Option<&Path>) -> ConfiguredServers {
    let files = match named {
        Some(file) => named_file(environment, file),
        None => known_files(environment),
    };
    let mut reader = read::ConfigReader::new(environment.user_id);
    for file in &files {
        reader.read(file);
    }
    reader.servers
}

impl ConfiguredServers {
    /// Finds a server by `name`, or by `name@source` for one that is shadowed.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<&ConfiguredServer> {
        let lookup = |name: &str, source: Option<&str>| {
            let mut servers = self.servers.iter();
            servers.find(|server| {
                server.name == name && source.is_none_or(|source| server.source.id() == source)
            })
        };
        // Names may contain `@`; but such a name in a project does not replace a server of the user.
        let whole = lookup(name, None);
        let with_source = || {
            let (name, source) = name.rsplit_once('@')?;
            lookup(name, Some(source))
        };
        match whole {
            Some(server) if server.scope == ConfigScope::User => whole,
            Some(_) => with_source()
                .filter(|server| server.scope == ConfigScope::User)
                .or(whole),
            None => with_source(),
        }
    }

    /// Returns whether another server of the same name is used instead.
    pub(crate) fn is_shadowed(&self, server: &ConfiguredServer) -> bool {
        self.find_by_name(&server.name)
            .is_some_and(|first| !std::ptr::eq(first, server))
    }
}

/// Returns the files that [`find_servers`] reads, whether they exist or not.
#[allow(dead_code, reason = "used by the optional command `bridge`")]
pub(crate) fn file_paths(environment: &Environment, named: Option<&Path>) -> Vec<PathBuf> {
    let files = match named {
        Some(file) => named_file(environment, file),
        None => known_files(environment),
    };
    let mut paths: Vec<_> = files.into_iter().map(|file| file.file).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// A table of servers in a file.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) source: ConfigSource,
    pub(super) scope: ConfigScope,
    pub(super) file: PathBuf,
    /// The directory that the file applies to.
    pub(super) folder: PathBuf,
    /// The path of keys to the table.
    pub(super) table: Vec<String>,
    /// True if a missing file is reported.
    pub(super) must_exist: bool,
    /// True if the file is used only if it and its directories belong to the user.
    pub(super) checks_owner: bool,
}

/// Files of a project, below each of its directories.
const PROJECT_FILES: &[(ConfigSource, &str, &str)] = &[
    (ConfigSource::Project, ".mcp.json", "mcpServers"),
    (ConfigSource::VsCode, ".vscode/mcp.json", "servers"),
    (ConfigSource::Cursor, ".cursor/mcp.json", "mcpServers"),
    (ConfigSource::Gemini, ".gemini/settings.json", "mcpServers"),
];

/// Returns the tables of a file that is named on the command line.
fn named_file(environment: &Environment, file: &Path) -> Vec<ConfigFile> {
    let file = environment.cwd.join(file);
    let folder = file.parent().unwrap_or(&environment.cwd).to_owned();
    let config = |table: &str| ConfigFile {
        source: ConfigSource::Given,
        // The user may not have read the file, so its servers need approval.
        scope: ConfigScope::Project,
        file: file.clone(),
        folder: folder.clone(),
        table: vec![table.to_owned()],
        must_exist: true,
        checks_owner: false,
    };
    ["mcpServers", "servers", "mcp_servers"].map(config).into()
}

/// Returns the tables of all known files.
fn known_files(environment: &Environment) -> Vec<ConfigFile> {
    let folders = || project_dirs(&environment.cwd);
    let claude_code_project_file =
        folders().filter_map(|folder| claude_code_project_file(environment, folder));
    let mut files: Vec<_> = claude_code_project_file.collect();
    files.extend(user_files(environment));
    let users = files.len();
    for file in folders().flat_map(project_files) {
        // The home directory can be a project directory; its files belong to the user.
        if !files[..users].iter().any(|user| user.file == file.file) {
            files.push(file);
        }
    }
    files
}

/// Returns the directories from the current one up to the root of the repository; without one, only the current one.
fn project_dirs(cwd: &Path) -> impl Iterator<Item = &Path> {
    let root = cwd.ancestors().find(|folder| folder.join(".git").exists());
    let root = root.unwrap_or(cwd);
    cwd.ancestors()
        .take_while(move |folder| folder.starts_with(root))
}

fn project_files(folder: &Path) -> impl Iterator<Item = ConfigFile> {
    PROJECT_FILES
        .iter()
        .map(|(source, file, table)| ConfigFile {
            source: *source,
            scope: ConfigScope::Project,
            file: folder.join(file),
            folder: folder.to_owned(),
            table: vec![(*table).to_owned()],
            must_exist: false,
            checks_owner: true,
        })
}

/// Returns the table that Claude Code has for one project, in a file of the user.
fn claude_code_project_file(environment: &Environment, folder: &Path) -> Option<ConfigFile> {
    Some(ConfigFile {
        source: ConfigSource::ClaudeCode,
        scope: ConfigScope::User,
        file: environment.below_home(".claude.json")?,
        folder: folder.to_owned(),
        table: vec![
            "projects".to_owned(),
            folder.to_str()?.to_owned(),
            "mcpServers".to_owned(),
        ],
        must_exist: false,
        checks_owner: false,
    })
}

fn user_files(environment: &Environment) -> Vec<ConfigFile> {
    let config = |file: &str| environment.config_dir().map(|folder| folder.join(file));
    let codex = environment.var("CODEX_HOME").map(PathBuf::from);
    let codex = codex.or_else(|| environment.below_home(".codex"));
    let files = [
        (
            ConfigSource::ClaudeCode,
            environment.below_home(".claude.json"),
            "mcpServers",
        ),
        (
            ConfigSource::ClaudeDesktop,
            config("Claude/claude_desktop_config.json"),
            "mcpServers",
        ),
        (
            ConfigSource::VsCode,
            config("Code/User/mcp.json"),
            "servers",
        ),
        (
            ConfigSource::Cursor,
            environment.below_home(".cursor/mcp.json"),
            "mcpServers",
        ),
        (
            ConfigSource::Codex,
            codex.map(|folder| folder.join("config.toml")),
            "mcp_servers",
        ),
        (
            ConfigSource::Gemini,
            environment.below_home(".gemini/settings.json"),
            "mcpServers",
        ),
    ];
    let config = |(source, file, table): (ConfigSource, Option<PathBuf>, &str)| {
        Some(ConfigFile {
            source,
            scope: ConfigScope::User,
            file: file?,
            folder: environment.cwd.clone(),
            table: vec![table.to_owned()],
            must_exist: false,
            checks_owner: false,
        })
    };
    files.into_iter().filter_map(config).collect()
}

/// Returns the first of a file, its directory and its project directory that does not belong to the user.
///
/// `opened` is the metadata of the file that was read, which may have been replaced since. Both a symbolic link and
/// its target have to belong to the user.
#[cfg(unix)]
pub(super) fn find_foreign(
    file: &Path,
    opened: &Metadata,
    project: &Path,
    user_id: u32,
) -> Option<PathBuf> {
    use std::{fs, os::unix::fs::MetadataExt};

    let is_foreign = |path: &Path| {
        let owners = [fs::symlink_metadata(path), fs::metadata(path)];
        // A file that cannot be examined counts as foreign.
        let mut owners = owners.iter();
        owners.any(|owner| !matches!(owner, Ok(owner) if owner.uid() == user_id))
    };
    if opened.uid() != user_id {
        return Some(file.to_owned());
    }
    let mut paths = [Some(file), file.parent(), Some(project)]
        .into_iter()
        .flatten();
    paths.find(|path| is_foreign(path)).map(Path::to_owned)
}

/// Returns `None`: this system has no such check.
#[cfg(not(unix))]
pub(super) fn find_foreign(_: &Path, _: &Metadata, _: &Path, _: u32) -> Option<PathBuf> {
    None
}

/// A program with configuration files that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    /// A file named on the command line.
    Given,
    /// The configuration file of the bridge.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    Bridge,
    /// `.mcp.json`, which several programs share.
    Project,
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Visual Studio Code.
    VsCode,
    /// Cursor.
    Cursor,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
}

impl ConfigSource {
    /// Returns the name after the `@`.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Given => "config",
            Self::Bridge => "bridge",
            Self::Project => "project",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::VsCode => "vscode",
            Self::Cursor => "cursor",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Returns how this program writes variables.
    pub(crate) fn variable_syntax(self) -> VariableSyntax {
        match self {
            Self::Given | Self::Bridge | Self::Project | Self::ClaudeCode => VariableSyntax::Braces,
            Self::VsCode | Self::Cursor => VariableSyntax::Editor,
            Self::Gemini => VariableSyntax::Dollar,
            Self::ClaudeDesktop | Self::Codex => VariableSyntax::None,
        }
    }

    /// Returns whether `url` alone means HTTP+SSE.
    pub(crate) fn url_means_sse(self) -> bool {
        self == Self::Gemini
    }
}

/// The syntax of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableSyntax {
    /// Variables are not supported.
    None,
    /// `${NAME}`, `${NAME:-fallback}`, `${env:NAME}`.
    Braces,
    /// `${env:NAME}`, `${workspaceFolder}`, `${input:id}`.
    Editor,
    /// `$NAME`, and the syntax with braces.
    Dollar,
}

/// The author of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigScope {
    /// The file belongs to a project, which may come from another person.
    Project,
    /// The user.
    User,
}

#[cfg(test)]
pub(crate) mod tests;
