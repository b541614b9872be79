//! What a configuration says about one server.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::expand::{ExpandError, Expansion};
use super::{Scope, Server, Source};
use crate::environment::Environment;
use crate::secret::Secret;

/// How to reach a server, before its variables are expanded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// Start a program.
    Start(Start),
    /// Connect to a URL.
    Remote(Remote),
}

/// A program to start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Start {
    /// The program.
    pub(crate) program: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Variables that are set for it.
    pub(crate) env: Vec<(String, Secret)>,
    /// Names of the user's variables that are passed on to it, where they are set.
    pub(crate) env_vars: Vec<String>,
    /// A file with more variables.
    pub(crate) env_file: Option<String>,
    /// The folder it is started in.
    pub(crate) cwd: Option<String>,
    /// What was looked up when the definition was resolved.
    pub(crate) lookup: Lookup,
}

/// What the definition of a command leads to on this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lookup {
    /// The absolute path of the program, if it was found.
    pub(crate) program: Option<PathBuf>,
    /// The absolute path of the file with variables.
    pub(crate) env_file: Option<PathBuf>,
    /// The variables in that file.
    pub(crate) env_of_file: Vec<(String, Secret)>,
}

/// A URL to connect to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remote {
    /// Where it is.
    pub(crate) url: String,
    /// Whether it is said to speak the HTTP+SSE of 2024-11-05.
    pub(crate) sse: bool,
    /// Headers to send.
    pub(crate) headers: Vec<(String, Secret)>,
    /// Headers whose value is in an environment variable, with what stands before it.
    pub(crate) from_env: Vec<(String, &'static str, String)>,
}

impl Entry {
    /// Reads what stands under the name of a server.
    pub(super) fn read(value: &Value, source: Source) -> Result<Self, String> {
        let members = value.as_object().ok_or("is not an object")?;
        let kind = text(members, "type")?;
        match (kind.as_deref(), members.contains_key("command")) {
            (Some("stdio"), _) | (None, true) => start(members).map(Self::Start),
            (None | Some("http" | "sse" | "streamable-http" | "streamable_http"), _) => {
                remote(members, kind.as_deref(), source).map(Self::Remote)
            }
            (Some(other), _) => Err(format!("has the unknown type `{other}`")),
        }
    }

    /// Returns the word for its transport.
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Start(_) => "stdio",
            Self::Remote(remote) if remote.sse => "sse",
            Self::Remote(_) => "http",
        }
    }
}

impl Remote {
    /// Names a URL, and nothing else.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            sse: false,
            headers: Vec::new(),
            from_env: Vec::new(),
        }
    }

    /// Says whether its headers tell the server who we are.
    pub(crate) fn names_us(&self) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }
}

impl Start {
    /// Returns the folder that the program is started in.
    pub(crate) fn folder(&self, server: &Server) -> PathBuf {
        match &self.cwd {
            Some(cwd) => server.folder.join(cwd),
            None => server.folder.clone(),
        }
    }

    /// Refuses paths of a project where the program would be looked for on another machine.
    fn check_local(
        &self,
        expansion: &Expansion<'_>,
        environment: &Environment,
    ) -> Result<(), ExpandError> {
        expansion.check_local("command", &self.program)?;
        expansion.check_local("cwd", self.cwd.as_deref().unwrap_or_default())?;
        let path = self.own_search_path(environment).unwrap_or_default();
        for entry in std::env::split_paths(path) {
            expansion.check_local("PATH", &entry.to_string_lossy())?;
        }
        Ok(())
    }

    /// Returns the variables that are set for the program; of two with the same name the last one counts.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.lookup.env_of_file.iter().chain(&self.env);
        pairs.map(|(name, value)| (name.as_str(), value.reveal()))
    }
}

impl Server {
    /// Returns the names of the variables that the definition reads from the environment.
    pub(crate) fn variables(&self, environment: &Environment) -> Vec<String> {
        let expansion = Expansion::new(self, environment);
        // What cannot be expanded is reported when it is used.
        let _ = self.expand(&expansion);
        expansion.into_names()
    }

    /// Returns how to reach the server, with its variables replaced by what they stand for.
    pub(crate) fn resolve(&self, environment: &Environment) -> Result<Entry, ExpandError> {
        let expansion = Expansion::new(self, environment);
        let mut entry = self.expand(&expansion)?;
        if let Entry::Start(start) = &mut entry {
            start.check_local(&expansion, environment)?;
            start.lookup.program = start.find_program(self, environment);
            // What the user agrees to is a file, so there has to be one.
            if start.lookup.program.is_none() && self.scope == Scope::Project {
                return Err(ExpandError::NoProgram(start.program.clone()));
            }
        }
        Ok(entry)
    }

    fn expand(&self, expansion: &Expansion<'_>) -> Result<Entry, ExpandError> {
        match &self.entry {
            Entry::Start(start) => expand_start(start, expansion).map(Entry::Start),
            Entry::Remote(remote) => expand_remote(remote, expansion).map(Entry::Remote),
        }
    }
}

fn expand_start(start: &Start, expansion: &Expansion<'_>) -> Result<Start, ExpandError> {
    let mut lookup = Lookup::default();
    if let Some(file) = &start.env_file {
        let file = expansion.text(file)?;
        expansion.check_local("envFile", &file)?;
        let file = expansion.folder().join(file);
        lookup.env_of_file = expansion.env_file(&file)?;
        lookup.env_file = Some(file);
    }
    let passed_on = start.env_vars.iter().filter_map(|name| {
        let value = expansion.variable(name).ok()?;
        Some((name.clone(), Secret::new(value)))
    });
    let mut env: Vec<_> = passed_on.collect();
    env.extend(pairs(&start.env, expansion)?);
    let arguments = start.arguments.iter();
    Ok(Start {
        program: expansion.text(&start.program)?,
        arguments: arguments
            .map(|argument| expansion.text(argument))
            .collect::<Result<_, _>>()?,
        env,
        env_vars: Vec::new(),
        env_file: None,
        cwd: start
            .cwd
            .as_deref()
            .map(|cwd| expansion.text(cwd))
            .transpose()?,
        lookup,
    })
}

fn expand_remote(remote: &Remote, expansion: &Expansion<'_>) -> Result<Remote, ExpandError> {
    let mut headers = pairs(&remote.headers, expansion)?;
    for (name, before, variable) in &remote.from_env {
        let value = expansion.variable(variable)?;
        headers.push((name.clone(), Secret::new(format!("{before}{value}"))));
    }
    Ok(Remote {
        url: expansion.text(&remote.url)?,
        sse: remote.sse,
        headers,
        from_env: Vec::new(),
    })
}

fn pairs(
    pairs: &[(String, Secret)],
    expansion: &Expansion<'_>,
) -> Result<Vec<(String, Secret)>, ExpandError> {
    let pair = |(name, value): &(String, Secret)| {
        Ok((name.clone(), Secret::new(expansion.text(value.reveal())?)))
    };
    pairs.iter().map(pair).collect()
}

fn start(members: &Map<String, Value>) -> Result<Start, String> {
    let arguments = match members.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => {
            let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
            let texts: Option<_> = texts.collect();
            texts.ok_or("has `args` that are not all text")?
        }
        Some(_) => return Err("has `args` that are not a list".to_owned()),
    };
    Ok(Start {
        program: text(members, "command")?.ok_or("has no `command`")?,
        arguments,
        env: table(members, "env")?,
        env_vars: env_vars(members)?,
        env_file: text(members, "envFile")?,
        cwd: text(members, "cwd")?,
        lookup: Lookup::default(),
    })
}

/// Reads the names of variables that Codex passes on: text, or objects with a `name`.
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

fn remote(
    members: &Map<String, Value>,
    kind: Option<&str>,
    source: Source,
) -> Result<Remote, String> {
    let streamable = text(members, "httpUrl")?;
    let sse = match kind {
        Some(kind) => kind == "sse",
        None => source.url_means_sse() && streamable.is_none(),
    };
    let url = streamable.or(text(members, "url")?);
    let mut headers = table(members, "headers")?;
    headers.extend(table(members, "http_headers")?);
    let bearer = text(members, "bearer_token_env_var")?;
    let bearer = bearer.map(|variable| ("Authorization".to_owned(), "Bearer ", variable));
    let others = table(members, "env_http_headers")?.into_iter();
    let others = others.map(|(name, variable)| (name, "", variable.reveal().to_owned()));
    Ok(Remote {
        url: url.ok_or("has neither `command` nor `url`")?,
        sse,
        headers,
        from_env: bearer.into_iter().chain(others).collect(),
    })
}

fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("has a `{name}` that is not text")),
    }
}

/// Reads named values. Numbers and yes or no are as good as their text; null means nothing is set.
fn table(members: &Map<String, Value>, name: &str) -> Result<Vec<(String, Secret)>, String> {
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
