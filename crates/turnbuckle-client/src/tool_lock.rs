//! A tool lock: the digests of the definitions that a user has accepted, to notice when a server changes them.
//!
//! A [`ServerLock`] has the digests of the tools, prompts and resource templates of a server, and
//! [`ServerLock::compare`] tells two of them apart. With the feature `tool-lock`, `LockFile` reads and writes them as
//! text. This module opens no files.

mod comparison;
mod definition;
#[cfg(feature = "tool-lock")]
mod file;

use std::collections::BTreeMap;

pub use comparison::{Difference, LockState};
pub use definition::{DefinitionDigests, DefinitionKind};
#[cfg(feature = "tool-lock")]
pub use file::{InvalidLockFile, LockFile};

use crate::ToolDigest;

/// The accepted definitions of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLock {
    /// The URL or command of the server, for readers of the lock.
    pub target: Option<String>,
    /// The revision in which the server sent the definitions. Another revision may have others.
    pub revision: Option<String>,
    /// The digest of the instructions for models.
    pub instructions: Option<ToolDigest>,
    definitions: [BTreeMap<String, DefinitionDigests>; DefinitionKind::ALL.len()],
}

impl ServerLock {
    /// Creates a lock without definitions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the digest of the instructions for models.
    pub fn set_instructions(&mut self, instructions: Option<&str>) {
        self.instructions = instructions.map(ToolDigest::from_text);
    }

    /// Returns whether instructions are those of the lock.
    pub fn has_instructions(&self, instructions: &str) -> bool {
        self.instructions == Some(ToolDigest::from_text(instructions))
    }

    /// Adds or replaces a definition: `name` is a name or a URI template.
    pub fn insert(
        &mut self,
        kind: DefinitionKind,
        name: impl Into<String>,
        digests: DefinitionDigests,
    ) {
        self.definitions[kind as usize].insert(name.into(), digests);
    }

    /// Returns a definition.
    pub fn get(&self, kind: DefinitionKind, name: &str) -> Option<&DefinitionDigests> {
        self.definitions[kind as usize].get(name)
    }

    /// Returns all definitions of a kind, sorted by name.
    pub fn definitions(
        &self,
        kind: DefinitionKind,
    ) -> impl Iterator<Item = (&str, &DefinitionDigests)> {
        let definitions = self.definitions[kind as usize].iter();
        definitions.map(|(name, digests)| (&**name, digests))
    }
}
