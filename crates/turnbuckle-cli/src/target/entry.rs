//! The entry of a server in a configuration file.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use turnbuckle_auth::Secret;

use super::{
    config_files::{ConfigScope, ConfigSource, ConfiguredServer},
    expand::{ExpandError, VariableExpander},
};
use crate::environment::{Environment, Platform};

/// The connection to a server. In a file, the variables are not expanded.
#[derive(Clone, Debug)]
pub(crate) enum ServerEntry {
    /// Start a program.
    Command(CommandEntry),
    /// Connect to a URL.
    Http(HttpEntry),
}

/// A program to start.
#[derive(Clone, Debug)]
pub(crate) struct CommandEntry {
    /// The program.
    pub(crate) program: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Environment variables that are set for it.
    pub(crate) env: Vec<(String, Secret)>,
    /// Names of the user's variables that are passed to it if they are set.
    pub(crate) env_vars: Vec<String>,
    /// A file with more variables.
    pub(crate) env_file: Option<String>,
    /// The directory it is started in.
    pub(crate) cwd: Option<String>,
    /// Paths that were found when the entry was resolved.
    pub(crate) lookup: CommandLookup,
}

/// The paths of a command on this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandLookup {
    /// The absolute path of the program, if it was found.
    pub(crate) program: Option<PathBuf>,
    /// The absolute path of the file with variables.
    pub(crate) env_file: Option<PathBuf>,
    /// The variables in that file.
    pub(crate) env_of_file: Vec<(String, Secret)>,
}

/// A URL to connect to.
#[derive(Clone, Debug)]
pub(crate) struct HttpEntry {
    /// The URL.
    pub(crate) url: String,
    /// True if the server uses HTTP+SSE of 2024-11-05.
    pub(crate) sse: bool,
    /// Headers to send.
    pub(crate) headers: Vec<(String, Secret)>,
    /// Headers with the value of an environment variable: name, prefix, variable.
    pub(crate) from_env: Vec<(String, &'static str, String)>,
}

impl ServerEntry {
    /// Parses the value below the name of a server.
    pub(super) fn parse(value: &Value, source: ConfigSource) -> Result<Self, String> {
        let members = value.as_object().ok_or("is not an object")?;
        let kind = optional_text(members, "type")?;
        match (kind.as_deref(), members.contains_key("command")) {
            (Some("stdio"), _) | (None, true) => parse_command(members).map(Self::Command),
            (None | Some("http" | "sse" | "streamable-http" | "streamable_http"), _) => {
                parse_http(members, kind.as_deref(), source).map(Self::Http)
            }
            (Some(other), _) => Err(format!("has the unknown type `{other}`")),
        }
    }

    /// Returns the name of the transport.
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Command(_) => "stdio",
            Self::Http(http_entry) if http_entry.sse => "sse",
            Self::Http(_) => "http",
        }
    }
}

impl HttpEntry {
    /// Creates an entry without headers.
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            sse: false,
            headers: Vec::new(),
            from_env: Vec::new(),
        }
    }

    /// Returns whether there is an `Authorization` header.
    pub(crate) fn has_credentials(&self) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }
}

impl CommandEntry {
    /// Returns the directory that the program is started in.
    pub(crate) fn folder(&self, server: &ConfiguredServer) -> PathBuf {
        match &self.cwd {
            Some(cwd) => server.folder.join(cwd),
            None => server.folder.clone(),
        }
    }

    /// Returns an error if a project could make this machine look for the program on another one.
    fn check_local(
        &self,
        expander: &VariableExpander<'_>,
        environment: &Environment,
    ) -> Result<(), ExpandError> {
        expander.check_local("command", &self.program)?;
        expander.check_local("cwd", self.cwd.as_deref().unwrap_or_default())?;
        let path = self.own_search_path(environment).unwrap_or_default();
        for entry in std::env::split_paths(path) {
            expander.check_local("PATH", &entry.to_string_lossy())?;
        }
        Ok(())
    }

    /// Returns the variables that are set for the program; of two with the same name the last one is used.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.lookup.env_of_file.iter().chain(&self.env);
        pairs.map(|(name, value)| (name.as_str(), value.expose()))
    }
}

impl ConfiguredServer {
    /// Returns the names of the environment variables that the entry reads.
    pub(crate) fn variables(&self, environment: &Environment) -> Vec<String> {
        let expander = VariableExpander::new(self, environment);
        // Errors are reported when the server is used.
        let _ = self.expand(&expander);
        expander.into_names()
    }

    /// Returns the entry with its variables expanded and its program found.
    pub(crate) fn resolve(&self, environment: &Environment) -> Result<ServerEntry, ExpandError> {
        let expander = VariableExpander::new(self, environment);
        let mut entry = self.expand(&expander)?;
        if let ServerEntry::Command(command) = &mut entry {
            command.check_local(&expander, environment)?;
            command.lookup.program = command.find_program(self, environment);
            // The user approves a file, so it has to exist.
            if command.lookup.program.is_none() && self.scope == ConfigScope::Project {
                return Err(ExpandError::NoProgram(command.program.clone()));
            }
        }
        Ok(entry)
    }

    fn expand(&self, expander: &VariableExpander<'_>) -> Result<ServerEntry, ExpandError> {
        match &self.entry {
            ServerEntry::Command(command) => {
                expand_command(command, expander).map(ServerEntry::Command)
            }
            ServerEntry::Http(http_entry) => {
                expand_http(http_entry, expander).map(ServerEntry::Http)
            }
        }
    }
}

fn expand_command(
    command: &CommandEntry,
    expander: &VariableExpander<'_>,
) -> Result<CommandEntry, ExpandError> {
    let mut lookup = CommandLookup::default();
    if let Some(file) = &command.env_file {
        let file = expander.text(file)?;
        expander.check_local("envFile", &file)?;
        let file = expander.folder().join(file);
        lookup.env_of_file = expander.env_file(&file)?;
        lookup.env_file = Some(file);
    }
    let inherited = command.env_vars.iter().filter_map(|name| {
        let value = expander.variable(name).ok()?;
        Some((name.clone(), Secret::new(value)))
    });
    let mut env: Vec<_> = inherited.collect();
    env.extend(expand_pairs(&command.env, expander)?);
    let arguments = command.arguments.iter();
    Ok(CommandEntry {
        program: expander.text(&command.program)?,
        arguments: arguments
            .map(|argument| expander.text(argument))
            .collect::<Result<_, _>>()?,
        env,
        env_vars: Vec::new(),
        env_file: None,
        cwd: command
            .cwd
            .as_deref()
            .map(|cwd| expander.text(cwd))
            .transpose()?,
        lookup,
    })
}

fn expand_http(
    http_entry: &HttpEntry,
    expander: &VariableExpander<'_>,
) -> Result<HttpEntry, ExpandError> {
    let mut headers = expand_pairs(&http_entry.headers, expander)?;
    for (name, before, variable) in &http_entry.from_env {
        let value = expander.variable(variable)?;
        headers.push((name.clone(), Secret::new(format!("{before}{value}"))));
    }
    Ok(HttpEntry {
        url: expander.text(&http_entry.url)?,
        sse: http_entry.sse,
        headers,
        from_env: Vec::new(),
    })
}

fn expand_pairs(
    pairs: &[(String, Secret)],
    expander: &VariableExpander<'_>,
) -> Result<Vec<(String, Secret)>, ExpandError> {
    let pair = |(name, value): &(String, Secret)| {
        Ok((name.clone(), Secret::new(expander.text(value.expose())?)))
    };
    pairs.iter().map(pair).collect()
}

fn parse_command(members: &Map<String, Value>) -> Result<CommandEntry, String> {
    let arguments = match members.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => {
            let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
            let texts: Option<_> = texts.collect();
            texts.ok_or("has `args` that are not all text")?
        }
        Some(_) => return Err("has `args` that are not a list".to_owned()),
    };
    Ok(CommandEntry {
        program: optional_text(members, "command")?.ok_or("has no `command`")?,
        arguments,
        env: secret_table(members, "env")?,
        env_vars: env_vars(members)?,
        env_file: optional_text(members, "envFile")?,
        cwd: optional_text(members, "cwd")?,
        lookup: CommandLookup::default(),
    })
}

/// Parses the variables that Codex passes to a program: names, or objects with a `name`.
fn env_vars(members: &Map<String, Value>) -> Result<Vec<String>, String> {
    let values = match members.get("env_vars") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(values)) => values,
        Some(_) => return Err("has `env_vars` that are not a list".to_owned()),
    };
    let name = |value: &Value| {
        let name = value.get("name").unwrap_or(value);
        name.as_str().map(str::to_owned)
    };
    let names: Option<_> = values.iter().map(name).collect();
    names.ok_or_else(|| "has `env_vars` that are not all text".to_owned())
}

fn parse_http(
    members: &Map<String, Value>,
    kind: Option<&str>,
    source: ConfigSource,
) -> Result<HttpEntry, String> {
    let streamable = optional_text(members, "httpUrl")?;
    let sse = match kind {
        Some(kind) => kind == "sse",
        None => source.url_means_sse() && streamable.is_none(),
    };
    let url = streamable.or(optional_text(members, "url")?);
    let mut headers = secret_table(members, "headers")?;
    headers.extend(secret_table(members, "http_headers")?);
    let bearer = optional_text(members, "bearer_token_env_var")?;
    let bearer = bearer.map(|variable| ("Authorization".to_owned(), "Bearer ", variable));
    let others = secret_table(members, "env_http_headers")?.into_iter();
    let others = others.map(|(name, variable)| (name, "", variable.expose().to_owned()));
    Ok(HttpEntry {
        url: url.ok_or("has neither `command` nor `url`")?,
        sse,
        headers,
        from_env: bearer.into_iter().chain(others).collect(),
    })
}

fn optional_text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("has a `{name}` that is not text")),
    }
}

/// Parses a table of text values. Numbers and booleans become text; null is skipped.
fn secret_table(members: &Map<String, Value>, name: &str) -> Result<Vec<(String, Secret)>, String> {
    let values = match members.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(values)) => values,
        Some(_) => return Err(format!("has an `{name}` that is not a table")),
    };
    let mut pairs = Vec::new();
    for (key, value) in values {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null => continue,
            _ => return Err(format!("has a `{name}.{key}` that is not text")),
        };
        pairs.push((key.clone(), Secret::new(text)));
    }
    Ok(pairs)
}

impl CommandEntry {
    /// Returns the absolute path of the program, found as for the child: a path relative to the child's directory, a
    /// name in the child's `PATH`. `None` if there is no such file.
    pub(super) fn find_program(
        &self,
        server: &ConfiguredServer,
        environment: &Environment,
    ) -> Option<PathBuf> {
        let folder = self.folder(server);
        let program = Path::new(&self.program);
        // Removes `.` components.
        let tidy = |path: PathBuf| path.components().collect::<PathBuf>();
        if program.components().count() > 1 {
            return Some(tidy(folder.join(program)));
        }
        let path = self.search_path(environment)?;
        // Relative and empty entries are relative to the child's directory, too.
        let folders = std::env::split_paths(path).map(|entry| folder.join(entry));
        let mut files = folders.flat_map(|entry| candidates(&entry.join(program)));
        files.find(|file| is_program(file)).map(tidy)
    }

    /// Returns the `PATH` of the child: its own, or else the user's.
    fn search_path<'a>(&'a self, environment: &'a Environment) -> Option<&'a str> {
        let users = environment.vars.iter();
        let mut users = users.filter(|(name, _)| is_path(name, environment));
        let users = users.next().map(|(_, value)| value.as_str());
        self.own_search_path(environment).or(users)
    }

    /// Returns the `PATH` that the entry sets.
    pub(super) fn own_search_path(&self, environment: &Environment) -> Option<&str> {
        let own = self.variables();
        let own = own.filter(|(name, _)| is_path(name, environment));
        own.last().map(|(_, value)| value)
    }
}

fn is_path(name: &str, environment: &Environment) -> bool {
    match environment.platform {
        Platform::Windows => name.eq_ignore_ascii_case("PATH"),
        Platform::Linux | Platform::MacOs => name == "PATH",
    }
}

#[cfg(unix)]
fn candidates(file: &Path) -> [PathBuf; 1] {
    [file.to_owned()]
}

/// Adds `.exe` to a name without extension, as Windows does.
#[cfg(not(unix))]
fn candidates(file: &Path) -> [PathBuf; 1] {
    match file.extension() {
        Some(_) => [file.to_owned()],
        None => [file.with_extension("exe")],
    }
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    let metadata = std::fs::metadata(file);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}
