//! What the file holds, and the two forms in which it does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    super::{super::registration::Registered, Login},
    key::SealingKey,
};
use crate::Failure;

/// How a file of logins is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileForm {
    /// As it is; the rights of the file keep others out.
    #[default]
    Plain,
    /// Sealed with a key of the [`Keyring`](super::Keyring), so that a copy of the file tells nothing.
    Sealed,
}

/// What is kept.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    version: u32,
    #[serde(default)]
    pub(super) logins: BTreeMap<String, Login>,
    #[serde(default)]
    pub(super) registrations: BTreeMap<String, Registered>,
}

/// The version of a file that is not sealed, and of what is inside of one that is.
const PLAIN: u32 = 1;

/// The version of a sealed file, and the newest that is read.
const SEALED: u32 = 2;

/// What stands in a file: what is kept, or what has to be opened first.
pub(super) enum Written {
    Plain(Kept),
    Sealed(Sealed),
}

/// A sealed file.
#[derive(Serialize, Deserialize)]
pub(super) struct Sealed {
    version: u32,
    sealed: String,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// At this place; what stands there may be a secret.
    Damaged(String),
    Newer,
}

impl Kept {
    pub(super) fn nothing() -> Kept {
        Kept {
            version: PLAIN,
            logins: BTreeMap::new(),
            registrations: BTreeMap::new(),
        }
    }

    /// Writes what is kept, for people too.
    pub(super) fn plain(&self) -> Vec<u8> {
        lines(self)
    }

    /// Writes what is kept, for who has the key.
    pub(super) fn sealed(&self, key: &SealingKey) -> Result<Vec<u8>, Failure> {
        let sealed = key.seal(SEALED, &self.plain())?;
        let version = SEALED;
        Ok(lines(&Sealed { version, sealed }))
    }

    fn parse(bytes: &[u8]) -> Result<Kept, Unreadable> {
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

impl Written {
    pub(super) fn parse(bytes: &[u8]) -> Result<Written, Unreadable> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_slice(bytes).map_err(damaged)?;
        match version {
            0..=PLAIN => Kept::parse(bytes).map(Written::Plain),
            SEALED => serde_json::from_slice(bytes)
                .map(Written::Sealed)
                .map_err(damaged),
            _ => Err(Unreadable::Newer),
        }
    }

    pub(super) fn form(&self) -> FileForm {
        match self {
            Written::Plain(_) => FileForm::Plain,
            Written::Sealed(_) => FileForm::Sealed,
        }
    }
}

impl Sealed {
    /// Opens the file; nothing if this is not its key.
    pub(super) fn open(&self, key: &SealingKey) -> Option<Result<Kept, Unreadable>> {
        let text = key.open(self.version, &self.sealed)?;
        Some(Kept::parse(&text))
    }
}

fn lines(value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec_pretty(value);
    let mut json = json.expect("texts, numbers and maps by text are always written");
    json.push(b'\n');
    json
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn damaged(error: serde_json::Error) -> Unreadable {
    let (line, column) = (error.line(), error.column());
    Unreadable::Damaged(format!("line {line}, column {column}"))
}
