//! Which variables of this process's environment a child gets.
//!
//! The one file of the library that reads the environment, and it reads only to pass values on: a child needs `PATH` and
//! `HOME` to run at all, and the standard library offers all variables or none.

use std::{
    env,
    ffi::{OsStr, OsString},
};

/// Variables that a child gets by default.
///
/// What the official SDKs pass on, then the language of messages, the time zone and the folders for temporary files. None of
/// them usually holds a secret.
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

/// Variables that a child gets by default.
///
/// What the official SDKs pass on, then what programs need to find the system's folders and the shell.
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

/// What a child's environment starts from, before its own variables are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Inheritance {
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

/// Says whether a value is a function that a shell exported, which old shells run when they start.
fn is_shell_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_function_is_recognised() {
        assert!(is_shell_function(OsStr::new("() { :; }; echo")));
        assert!(!is_shell_function(OsStr::new("/usr/bin:()")));
    }
}
