//! What the user agreed to, in a file that only they can read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::state;

/// The definitions that the user agreed to use.
#[derive(Debug)]
pub(crate) struct Memory {
    file: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Agreed {
    agreed: Vec<Definition>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Definition {
    file: PathBuf,
    digest: String,
    /// Stands for the definition as it is written; absent in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written: Option<String>,
}

impl Memory {
    /// Returns what is remembered for this user.
    pub(crate) fn of(environment: &Environment) -> Self {
        let folder = state::folder(environment);
        Self {
            file: folder.map(|folder| folder.join("trust.json")),
        }
    }

    /// Says whether the user agreed to exactly this.
    pub(crate) fn knows(&self, file: &Path, digest: &str) -> bool {
        let mut agreed = self.read().agreed.into_iter();
        agreed.any(|known| known.file == file && known.digest == digest)
    }

    /// Says whether the user may have agreed to a definition that is written like this.
    pub(super) fn knows_written(&self, file: &Path, written: &str) -> bool {
        let mut agreed = self.read().agreed.into_iter();
        agreed.any(|known| {
            known.file == file
                && known
                    .written
                    .as_deref()
                    .is_none_or(|known| known == written)
        })
    }

    /// Keeps in mind that the user agreed, in place of what they agreed to in this file under the same digest.
    pub(super) fn remember(&self, file: &Path, digest: &str, written: &str) -> io::Result<()> {
        let Some(place) = &self.file else {
            return Err(io::Error::other("there is no home folder"));
        };
        let mut all = self.read();
        all.agreed.push(Definition {
            file: file.to_owned(),
            digest: digest.to_owned(),
            written: Some(written.to_owned()),
        });
        state::write(place, &serde_json::to_vec_pretty(&all)?)
    }

    /// What cannot be read is forgotten: the user is asked again.
    fn read(&self) -> Agreed {
        let text = self.file.as_ref().and_then(|file| fs::read(file).ok());
        let agreed = text.and_then(|text| serde_json::from_slice(&text).ok());
        agreed.unwrap_or_default()
    }
}
