//! What the process finds around itself: folders, variables, terminals.
//!
//! Read once, by `main`; everything else takes the value, so that tests say what there is.

mod user;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// Everything that is read from outside of the arguments and the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Whose files lie where.
    pub(crate) platform: Platform,
    /// The folder of the user, if there is one.
    pub(crate) home: Option<PathBuf>,
    /// The folder we stand in.
    pub(crate) cwd: PathBuf,
    /// The environment's variables that are text.
    pub(crate) vars: BTreeMap<String, String>,
    /// The name of the user, as far as it can be known without asking the environment; it decides whose data is seen.
    pub(crate) user: String,
    /// The number of the user whom this process acts for, where the system has such numbers.
    pub(crate) user_id: Option<u32>,
    /// What can be shown, and who can be asked.
    pub(crate) terminal: Terminal,
}

impl Environment {
    /// Reads the environment of this process.
    pub(crate) fn of_process() -> io::Result<Self> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Ok(Self {
            platform: Platform::HERE,
            home: std::env::home_dir(),
            cwd: std::env::current_dir()?,
            vars: std::env::vars_os().filter_map(text).collect(),
            user: user::name(),
            user_id: user::id(),
            terminal: Terminal::of_process(),
        })
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        let value = self.vars.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// Returns the folder that applications keep their settings in.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        match self.platform {
            Platform::Linux => self.folder("XDG_CONFIG_HOME", ".config"),
            Platform::MacOs => self.below_home("Library/Application Support"),
            Platform::Windows => self.folder("APPDATA", "AppData/Roaming"),
        }
    }

    /// Returns the folder that applications keep in what they remember.
    pub(crate) fn state_folder(&self) -> Option<PathBuf> {
        match self.platform {
            Platform::Linux => self.folder("XDG_STATE_HOME", ".local/state"),
            Platform::MacOs => self.below_home("Library/Application Support"),
            Platform::Windows => self.folder("LOCALAPPDATA", "AppData/Local"),
        }
    }

    /// Returns the folder that applications keep the user's data in.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        match self.platform {
            Platform::Linux => self.folder("XDG_DATA_HOME", ".local/share"),
            Platform::MacOs => self.below_home("Library/Application Support"),
            Platform::Windows => self.folder("LOCALAPPDATA", "AppData/Local"),
        }
    }

    /// Returns a path below the folder of the user.
    pub(crate) fn below_home(&self, path: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(path))
    }

    fn folder(&self, variable: &str, otherwise: &str) -> Option<PathBuf> {
        let named = self.var(variable).map(PathBuf::from);
        // The XDG rules: a relative path is to be ignored.
        let named = named.filter(|path| path.is_absolute());
        named.or_else(|| self.below_home(otherwise))
    }
}

/// The operating systems that differ in where files lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    /// Linux and other systems that follow the XDG rules.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The one this was built for.
    pub(crate) const HERE: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// Which of our streams end at a person.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Someone can answer, and sees what is asked.
    pub(crate) asks: bool,
    /// Someone reads what goes to stdout.
    pub(crate) reads: bool,
    /// How many columns there are.
    pub(crate) width: usize,
}

impl Terminal {
    fn of_process() -> Self {
        let width = terminal_size::terminal_size().map_or(100, |(width, _)| width.0.into());
        Self {
            asks: io::stdin().is_terminal() && io::stderr().is_terminal(),
            reads: io::stdout().is_terminal(),
            // What is narrower only breaks every word.
            width: usize::max(width, 40),
        }
    }
}
