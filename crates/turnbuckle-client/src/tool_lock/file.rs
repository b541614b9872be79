//! Tool locks as text: TOML with one line per definition, sorted.
//!
//! ```toml
//! version = 1
//!
//! [servers.notes]
//! target = "https://example.com/mcp"
//! revision = "2026-07-28"
//! instructions = "sha256:…"
//!
//! [servers.notes.tools]
//! add = { digest = "sha256:…", annotations = "sha256:…", description = "sha256:…", input = "sha256:…" }
//! ```

use std::{collections::BTreeMap, fmt, ops::Range};

use toml::de::{DeTable, DeValue};

use super::{DefinitionDigests, DefinitionKind, ServerLock};
use crate::ToolDigest;

/// The only version of the format.
const VERSION: &str = "1";

const DIGEST_PREFIX: &str = "sha256:";

/// The locks of several servers, by name.
///
/// [`LockFile::parse`] reads them from text, and the `Display` implementation writes them: equal locks have equal texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockFile {
    /// The servers by name.
    pub servers: BTreeMap<String, ServerLock>,
}

/// A text is not a tool lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
#[non_exhaustive]
pub struct InvalidLockFile {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// An error, and the bytes of the text that it is about.
struct LockError {
    at: Range<usize>,
    message: String,
}

type Result<T> = std::result::Result<T, LockError>;
type Entry<'a, 'i> = (
    &'a toml::Spanned<toml::de::DeString<'i>>,
    &'a toml::Spanned<DeValue<'i>>,
);

impl LockFile {
    /// Creates an empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a text.
    pub fn parse(text: &str) -> std::result::Result<Self, InvalidLockFile> {
        read(text).map_err(|error| {
            let before = text.get(..error.at.start).unwrap_or(text);
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            InvalidLockFile {
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
                message: error.message,
            }
        })
    }
}

fn read(text: &str) -> Result<LockFile> {
    let table = DeTable::parse(text).map_err(|error| LockError {
        at: error.span().unwrap_or(0..0),
        message: error.message().to_owned(),
    })?;
    let mut file = LockFile::new();
    let mut has_version = false;
    for (key, value) in table.get_ref() {
        match &**key.get_ref() {
            "version" => {
                let version = value.get_ref().as_integer();
                if version.is_none_or(|version| version.as_str() != VERSION) {
                    return invalid(value.span(), "the version must be 1");
                }
                has_version = true;
            }
            "servers" => {
                for (name, server) in entries(value)? {
                    let lock = read_server(server)?;
                    file.servers.insert(name.get_ref().to_string(), lock);
                }
            }
            _ => return unknown_key(key),
        }
    }
    if !has_version {
        return invalid(0..0, "`version = 1` is missing");
    }
    Ok(file)
}

fn read_server(value: &toml::Spanned<DeValue<'_>>) -> Result<ServerLock> {
    let mut lock = ServerLock::new();
    for (key, value) in entries(value)? {
        match &**key.get_ref() {
            "target" => lock.target = Some(string(value)?.to_owned()),
            "revision" => lock.revision = Some(string(value)?.to_owned()),
            "instructions" => lock.instructions = Some(read_digest(value)?),
            section => {
                let is_kind = |kind: &DefinitionKind| section_of(*kind) == section;
                let Some(kind) = DefinitionKind::ALL.into_iter().find(is_kind) else {
                    return unknown_key(key);
                };
                for (name, definition) in entries(value)? {
                    let digests = read_definition(kind, definition)?;
                    lock.insert(kind, name.get_ref().to_string(), digests);
                }
            }
        }
    }
    Ok(lock)
}

fn read_definition(
    kind: DefinitionKind,
    value: &toml::Spanned<DeValue<'_>>,
) -> Result<DefinitionDigests> {
    let (mut digest, mut members) = (None, BTreeMap::new());
    for (key, value) in entries(value)? {
        let name = &**key.get_ref();
        if name == "digest" {
            digest = Some(read_digest(value)?);
            continue;
        }
        let member = kind.members().iter().find(|(_, member)| *member == name);
        let Some((_, member)) = member else {
            return unknown_key(key);
        };
        members.insert(*member, read_digest(value)?);
    }
    match digest {
        Some(digest) => Ok(DefinitionDigests { digest, members }),
        None => invalid(value.span(), "`digest` is missing"),
    }
}

fn entries<'a, 'i>(
    value: &'a toml::Spanned<DeValue<'i>>,
) -> Result<impl Iterator<Item = Entry<'a, 'i>>> {
    match value.get_ref().as_table() {
        Some(table) => Ok(table.iter()),
        None => invalid(value.span(), "expected a table"),
    }
}

fn string<'a>(value: &'a toml::Spanned<DeValue<'_>>) -> Result<&'a str> {
    match value.get_ref().as_str() {
        Some(text) => Ok(text),
        None => invalid(value.span(), "expected a string"),
    }
}

fn read_digest(value: &toml::Spanned<DeValue<'_>>) -> Result<ToolDigest> {
    let digest = string(value)?.strip_prefix(DIGEST_PREFIX);
    match digest.and_then(|digest| digest.parse().ok()) {
        Some(digest) => Ok(digest),
        None => invalid(
            value.span(),
            "expected a digest: `sha256:` and 64 hexadecimal digits",
        ),
    }
}

fn unknown_key<T>(key: &toml::Spanned<toml::de::DeString<'_>>) -> Result<T> {
    invalid(key.span(), format!("unknown key `{}`", key.get_ref()))
}

fn invalid<T>(at: Range<usize>, message: impl Into<String>) -> Result<T> {
    let message = message.into();
    Err(LockError { at, message })
}

fn section_of(kind: DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::Tool => "tools",
        DefinitionKind::Prompt => "prompts",
        DefinitionKind::Template => "templates",
    }
}

impl fmt::Display for LockFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "version = {VERSION}")?;
        for (name, server) in &self.servers {
            write_server(f, name, server)?;
        }
        Ok(())
    }
}

fn write_server(f: &mut fmt::Formatter<'_>, name: &str, server: &ServerLock) -> fmt::Result {
    let name = Key(name);
    writeln!(f, "\n[servers.{name}]")?;
    if let Some(target) = &server.target {
        writeln!(f, "target = {}", Quoted(target))?;
    }
    if let Some(revision) = &server.revision {
        writeln!(f, "revision = {}", Quoted(revision))?;
    }
    if let Some(digest) = &server.instructions {
        writeln!(f, "instructions = \"{DIGEST_PREFIX}{digest}\"")?;
    }
    for kind in DefinitionKind::ALL {
        let mut definitions = server.definitions(kind).peekable();
        if definitions.peek().is_some() {
            writeln!(f, "\n[servers.{name}.{}]", section_of(kind))?;
        }
        for (name, digests) in definitions {
            let digest = digests.digest;
            write!(f, "{} = {{ digest = \"{DIGEST_PREFIX}{digest}\"", Key(name))?;
            for (member, digest) in &digests.members {
                write!(f, ", {member} = \"{DIGEST_PREFIX}{digest}\"")?;
            }
            writeln!(f, " }}")?;
        }
    }
    Ok(())
}

/// A key, in quotes if it needs them.
struct Key<'a>(&'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !self.0.is_empty() && self.0.bytes().all(is_bare) {
            f.write_str(self.0)
        } else {
            Quoted(self.0).fmt(f)
        }
    }
}

/// A string on one line.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for ch in self.0.chars() {
            match ch {
                '"' | '\\' => write!(f, "\\{ch}")?,
                ch if ch.is_control() => write!(f, "\\u{:04X}", u32::from(ch))?,
                ch => write!(f, "{ch}")?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests;
