//! The environment of the process: directories, variables, terminals.
//!
//! `main` reads it once. All other code takes it as a value, so that tests can set it.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    path::PathBuf,
};

/// Everything that is read from the process, except arguments and configuration files.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// The platform, which decides where files are.
    pub(crate) platform: Platform,
    /// The home directory of the user, if there is one.
    pub(crate) home: Option<PathBuf>,
    /// The current directory.
    pub(crate) cwd: PathBuf,
    /// The environment variables that are valid Unicode.
    pub(crate) vars: BTreeMap<String, String>,
    /// The name of the user. It does not depend on environment variables, because it selects the data that is used.
    #[allow(dead_code, reason = "used by the optional command `serve`")]
    pub(crate) user: String,
    /// The effective user id, on systems that have one.
    pub(crate) user_id: Option<u32>,
    /// The properties of the terminal.
    pub(crate) terminal: TerminalInfo,
}

impl Environment {
    /// Reads the environment of this process.
    pub(crate) fn from_process() -> io::Result<Self> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Ok(Self {
            platform: Platform::CURRENT,
            home: std::env::home_dir(),
            cwd: std::env::current_dir()?,
            vars: std::env::vars_os().filter_map(text).collect(),
            user: user_name(),
            user_id: user_id(),
            terminal: TerminalInfo::from_process(),
        })
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        let value = self.vars.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// Returns the directory for configuration files.
    pub(crate) fn config_dir(&self) -> Option<PathBuf> {
        match self.platform {
            Platform::Linux => self.base_dir("XDG_CONFIG_HOME", ".config"),
            Platform::MacOs => self.below_home("Library/Application Support"),
            Platform::Windows => self.base_dir("APPDATA", "AppData/Roaming"),
        }
    }

    /// Returns the directory for state files.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        match self.platform {
            Platform::Linux => self.base_dir("XDG_STATE_HOME", ".local/state"),
            Platform::MacOs => self.below_home("Library/Application Support"),
            Platform::Windows => self.base_dir("LOCALAPPDATA", "AppData/Local"),
        }
    }

    /// Returns the directory for user data.
    #[allow(dead_code, reason = "used by the optional command `serve`")]
    pub(crate) fn data_dir(&self) -> Option<PathBuf> {
        match self.platform {
            Platform::Linux => self.base_dir("XDG_DATA_HOME", ".local/share"),
            Platform::MacOs => self.below_home("Library/Application Support"),
            Platform::Windows => self.base_dir("LOCALAPPDATA", "AppData/Local"),
        }
    }

    /// Returns a path below the home directory.
    pub(crate) fn below_home(&self, path: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(path))
    }

    fn base_dir(&self, variable: &str, fallback: &str) -> Option<PathBuf> {
        let configured = self.var(variable).map(PathBuf::from);
        // XDG base directory specification: relative paths are ignored.
        let configured = configured.filter(|path| path.is_absolute());
        configured.or_else(|| self.below_home(fallback))
    }
}

/// The platforms that differ in where files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    /// Linux and other systems that follow the XDG specification.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The platform this was built for.
    pub(crate) const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// The properties of the standard streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TerminalInfo {
    /// True if the user can be asked: stdin and stderr are terminals.
    pub(crate) is_interactive: bool,
    /// True if stdout is a terminal.
    pub(crate) stdout_is_terminal: bool,
    /// The number of columns.
    pub(crate) width: usize,
}

impl TerminalInfo {
    fn from_process() -> Self {
        let width = terminal_size::terminal_size().map_or(100, |(width, _)| width.0.into());
        Self {
            is_interactive: io::stdin().is_terminal() && io::stderr().is_terminal(),
            stdout_is_terminal: io::stdout().is_terminal(),
            // A narrower terminal would break every word.
            width: usize::max(width, 40),
        }
    }
}

/// Returns the name of the user who runs the process.
///
/// Programs that start servers often clear the environment. If the name came from `USER`, the same user could have
/// two owners of context data. So it is the name that `/etc/passwd` has for the uid, or else the uid.
#[cfg(unix)]
fn user_name() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_for_uid(&passwd, &uid).unwrap_or(uid)
}

/// Returns the name of the user who runs the process.
#[cfg(not(unix))]
fn user_name() -> String {
    std::env::var("USERNAME").unwrap_or_default()
}

/// Returns the effective user id.
#[cfg(unix)]
fn user_id() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Returns `None`: this system lacks user ids.
#[cfg(not(unix))]
fn user_id() -> Option<u32> {
    None
}

#[cfg(unix)]
fn name_for_uid(passwd: &str, uid: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(uid)).then(|| name.to_owned())
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn user_names_are_found_by_uid() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_for_uid(passwd, "1000").unwrap(), "ada");
        assert_eq!(name_for_uid(passwd, "0").unwrap(), "root");
        assert_eq!(name_for_uid(passwd, "x"), None);
        assert_eq!(name_for_uid("", "0"), None);
    }
}
