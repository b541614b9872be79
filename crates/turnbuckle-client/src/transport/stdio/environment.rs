//! The environment variables that a child inherits.
//!
//! The only file of the library that reads the environment, and only for children: they need `PATH` and `HOME`, the
//! standard library passes on all variables or none, and their programs are looked up in `PATH`.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// The variables that a child inherits by default.
///
/// Those of the official SDKs, then locale, time zone and directories for temporary files. They usually contain no
/// secrets.
#[cfg(not(windows))]
const SAFE: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "TMPDIR",
    "TZ",
    "XDG_RUNTIME_DIR",
];

/// The variables that a child inherits by default.
///
/// Those of the official SDKs, then those needed to find system directories and the shell.
#[cfg(windows)]
const SAFE: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "COMSPEC",
    "PROGRAMDATA",
    "TMP",
    "WINDIR",
];

/// The variables that a child inherits, before its own are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EnvInheritance {
    /// The variables of [`SAFE`].
    #[default]
    Safe,
    /// All variables.
    All,
    /// No variable.
    Nothing,
}

/// Returns the variables of [`SAFE`] that are set.
pub(super) fn safe_variables() -> Vec<(&'static str, OsString)> {
    let variable = |&name: &&'static str| Some((name, env::var_os(name)?));
    let variables = SAFE.iter().filter_map(variable);
    variables
        .filter(|(_, value)| !is_shell_function(value))
        .collect()
}

/// Returns the folders in the `PATH` of a child that inherits variables and sets others.
pub(super) fn search_path(
    inherits: EnvInheritance,
    variables: &[(OsString, OsString)],
) -> Option<Vec<PathBuf>> {
    let mut latest_first = variables.iter().rev();
    let path = match latest_first.find(|(name, _)| name == "PATH") {
        Some((_, path)) => path.clone(),
        None if inherits == EnvInheritance::Nothing => return None,
        None => env::var_os("PATH")?,
    };
    Some(env::split_paths(&path).collect())
}

/// Returns whether a value is an exported shell function, which old shells run at startup.
fn is_shell_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_functions_are_recognized() {
        assert!(is_shell_function(OsStr::new("() { :; }; echo")));
        assert!(!is_shell_function(OsStr::new("/usr/bin:()")));
    }
}
