//! A server as a child process: one message per line on its standard input and output.
//!
//! [`Child`] says how to start it, and [`Process`] is the one that runs. It lives in a process group of its own: a
//! Ctrl-C at the terminal is not meant for it, and what it starts itself ends with it. Windows has no such groups;
//! there only the child itself is ended.

mod ending;
mod environment;
mod error;
mod exit;
#[cfg(not(unix))]
#[path = "stdio/plain.rs"]
mod group;
#[cfg(unix)]
#[path = "stdio/unix.rs"]
mod group;
mod observer;
mod output;
mod process;
mod running;
mod stderr;

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use tokio::process::Command;

pub(crate) use self::running::Running;
use self::{environment::Inheritance, group::Group, observer::SharedObserver, stderr::Tap};
pub use self::{
    error::SpawnError,
    exit::{Died, Exit},
    observer::ProcessObserver,
    output::Output,
    process::{Process, Started},
};
use crate::{Client, ConnectError};

/// How long a server may take to end before it is made to.
const GRACE: Duration = Duration::from_secs(2);

/// Starts a server and connects to it.
///
/// ```no_run
/// use turnbuckle_client::stdio::{self, Child};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = stdio::spawn(Child::new("weather-server").arg("--metric")).await?;
/// # client.close().await;
/// # Ok(())
/// # }
/// ```
///
/// Nothing is left running when the client is dropped, but only [`Client::close`] waits for it. A server that dies ends
/// every call that waits with [`TransportError::Died`](crate::TransportError::Died). One of 2026-07-28, which
/// remembers nothing between requests, is started again by the next call.
///
/// # Errors
///
/// If the program cannot be started, ends before it answers, or has no revision in common with us.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn spawn(child: Child) -> Result<Client, ConnectError> {
    Client::plain().connect(child).await
}

/// How to start a server as a child process.
///
/// ```
/// use turnbuckle_client::stdio::Child;
///
/// let server = Child::new("weather-server")
///     .args(["--units", "metric"])
///     .env("STATION", "oslo")
///     .on_stderr(|line| tracing::debug!(line, "weather"));
/// ```
///
/// No shell is involved: the program gets its arguments as they are. On Windows a batch file is started if it is named
/// with its ending (`npx.cmd`, not `npx`), and refused if an argument cannot be quoted for it.
///
/// # Environment
///
/// Of the variables of this process the child gets a short list that usually holds no secrets, as with the official SDKs,
/// and then what [`env`](Self::env) sets. On Unix these are `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`; `LANG`,
/// `LANGUAGE`, `LC_*`, `TZ`; `TMPDIR` and `XDG_RUNTIME_DIR`. On Windows: `APPDATA`, `COMSPEC`, `HOMEDRIVE`, `HOMEPATH`,
/// `LOCALAPPDATA`, `PATH`, `PATHEXT`, `PROCESSOR_ARCHITECTURE`, `PROGRAMDATA`, `PROGRAMFILES`, `SYSTEMDRIVE`, `SYSTEMROOT`,
/// `TEMP`, `TMP`, `USERNAME`, `USERPROFILE`, `WINDIR`. [`inherit_all_env`](Self::inherit_all_env) passes on all
/// variables, [`env_clear`](Self::env_clear) none.
#[derive(Clone)]
#[must_use = "nothing is started yet"]
pub struct Child {
    program: OsString,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    inherits: Inheritance,
    folder: Option<PathBuf>,
    stderr: Stderr,
    tap: Option<Tap>,
    grace: Duration,
    observer: Option<SharedObserver>,
}

/// What becomes of a child's standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stderr {
    /// It is read, and the last 64 KiB are kept: [`Process::stderr_tail`].
    #[default]
    Captured,
    /// It goes where ours goes.
    Inherited,
    /// Nobody reads it.
    Discarded,
}

impl Child {
    /// Starts this program, found as the operating system finds programs.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            environment: Vec::new(),
            inherits: Inheritance::default(),
            folder: None,
            stderr: Stderr::default(),
            tap: None,
            grace: GRACE,
            observer: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets variables of its environment.
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        variables
            .into_iter()
            .fold(self, |child, (name, value)| child.env(name, value))
    }

    /// Passes on all variables of this process, not only the safe ones.
    ///
    /// The child then sees every key and token that this process was given. Prefer [`env`](Self::env) for what it needs.
    pub fn inherit_all_env(mut self) -> Self {
        self.inherits = Inheritance::All;
        self
    }

    /// Begins with an empty environment: nothing of ours, and nothing that was set before.
    pub fn env_clear(mut self) -> Self {
        self.environment.clear();
        self.inherits = Inheritance::Nothing;
        self
    }

    /// Starts it in this folder; give the program by its name or by an absolute path then.
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Says what becomes of its standard error; it is captured by default.
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Shows each line of its standard error to `tap`, as it comes; only if it is captured.
    ///
    /// Whoever is slow here slows the child down. Lines of more than 64 KiB come in pieces, and what is not UTF-8
    /// is replaced. It is the server's text: mind control characters before it reaches a terminal.
    pub fn on_stderr(mut self, tap: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.tap = Some(Tap::new(tap));
        self
    }

    /// Lets it take this long to end by itself, and as long again after SIGTERM; 2 seconds by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Reports its start and its end, also when it is started again.
    pub fn observer(mut self, observer: Arc<dyn ProcessObserver>) -> Self {
        self.observer = Some(SharedObserver(observer));
        self
    }

    /// Starts it, and leaves talking to you.
    ///
    /// # Errors
    ///
    /// If there is no such program or it cannot be started.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time and I/O enabled.
    pub fn start(&self) -> Result<Started, SpawnError> {
        let mut command = self.command();
        if let Some(observer) = &self.observer {
            observer.0.starting();
        }
        let child = command
            .spawn()
            .map_err(|error| SpawnError::new(&self.program, self.folder.as_deref(), error))?;
        let observer = self.observer.clone();
        Ok(process::keep(child, self.tap.clone(), self.grace, observer))
    }

    /// Returns program and arguments, to know the server by.
    pub(crate) fn command_line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        match self.inherits {
            Inheritance::All => &mut command,
            Inheritance::Nothing => command.env_clear(),
            Inheritance::Safe => command.env_clear().envs(environment::safe_variables()),
        };
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
            .args(&self.args)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match self.stderr {
                Stderr::Captured => Stdio::piped(),
                Stderr::Inherited => Stdio::inherit(),
                Stderr::Discarded => Stdio::null(),
            })
            .kill_on_drop(true);
        Group::lead(&mut command);
        command
    }
}

/// Shows no arguments and no values of variables: they may be secrets.
impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("program", &self.program)
            .field("folder", &self.folder)
            .field("stderr", &self.stderr)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
