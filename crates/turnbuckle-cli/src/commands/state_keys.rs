//! The file of `--state-key-file`: keys that seal request states, cursors and ids of tasks.

use std::path::Path;

use turnbuckle_auth::Secret;

use crate::{
    error::{CliError, Result},
    target::file_text,
};

/// The maximum size of the file.
const MAX_BYTES: u64 = 64 * 1024;

/// The minimum length of a key: 128 random bits as hexadecimal digits.
const MIN_LENGTH: usize = 32;

/// The keys, of which the first seals and all of them open.
#[derive(Debug)]
pub(crate) struct StateKeys(Vec<Secret>);

impl StateKeys {
    /// Reads a file that only the user can read.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let (text, metadata) = file_text::regular_file(path, MAX_BYTES).map_err(|error| {
            let message = format!("cannot read the state keys {shown}: {error}");
            CliError::could_not_run(message).hint(how_to_make_one(path))
        })?;
        if file_text::is_readable_by_others(&metadata) {
            let message = format!("other users can read the state keys {shown}");
            return Err(CliError::could_not_run(message).hint(format!("run `chmod 600 {shown}`")));
        }
        Self::parse(&text).map_err(|reason| {
            let message = format!("the state keys {shown} are invalid: {reason}");
            CliError::could_not_run(message).hint(how_to_make_one(path))
        })
    }

    /// Parses one key per line. Lines that are empty or start with `#` are left out.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let key = line.trim();
            if key.is_empty() || key.starts_with('#') {
                continue;
            }
            if key.len() < MIN_LENGTH {
                return Err(format!(
                    "line {number} has fewer than {MIN_LENGTH} characters"
                ));
            }
            keys.push(Secret::new(key));
        }
        if keys.is_empty() {
            return Err("a key is missing".to_owned());
        }
        Ok(Self(keys))
    }

    /// Returns the keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Secret::expose)
    }
}

/// Returns the command that makes a file with a key.
pub(crate) fn how_to_make_one(path: &Path) -> String {
    let path = path.display();
    format!("make a key with `(umask 077; openssl rand -hex 32 > {path})`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_key() {
        let key = "0123456789abcdef0123456789abcdef";
        let keys = StateKeys::parse(&format!("# new\n{key}1\n\n {key}2 \n")).unwrap();

        let keys: Vec<_> = keys.0.iter().map(Secret::expose).collect();
        assert_eq!(keys, [format!("{key}1"), format!("{key}2")]);
    }

    #[test]
    fn a_short_key_and_a_file_without_a_key_are_errors() {
        let error = |text| StateKeys::parse(text).unwrap_err();

        assert_eq!(error("# none\n"), "a key is missing");
        assert_eq!(error("\nsecret\n"), "line 2 has fewer than 32 characters");
    }
}
