//! Servers as child processes, with newline-delimited JSON on stdin and stdout.
//!
//! [`ServerCommand`] configures the child, and [`Process`] is the running child. The child leads its own process group,
//! so that Ctrl-C at the terminal does not reach it, and its descendants end with it. Windows lacks process groups;
//! there only the child itself is ended.

mod child_transport;
mod environment;
mod exit;
mod process;
mod process_group;
mod reaper;
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
use turnbuckle_protocol::recording::OpenEntry;

pub(crate) use crate::transport::stdio::child_transport::ChildTransport;
pub use crate::transport::stdio::{
    exit::{ExitReason, ProcessExited, SpawnError},
    process::{Process, ProcessObserver, ServerStdout, SpawnedProcess},
};
use crate::{
    client::Client,
    error::ConnectError,
    inbound::recorder::ConnectionRecorder,
    transport::stdio::{
        environment::EnvInheritance,
        process::SharedObserver,
        process_group::ProcessGroup,
        stderr::{StderrCallback, StderrOutput},
    },
};

/// Default time that a server may take to exit before it is killed.
const DEFAULT_KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts a server and connects to it.
///
/// ```no_run
/// use turnbuckle_client::stdio::{self, ServerCommand};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = stdio::spawn(ServerCommand::new("weather-server").arg("--metric")).await?;
/// # client.close().await;
/// # Ok(())
/// # }
/// ```
///
/// The server ends when the client is dropped, but only [`Client::close`] waits for it. If the server exits, pending
/// calls fail with [`TransportError::ProcessExited`](crate::TransportError::ProcessExited). A server of 2026-07-28,
/// which keeps no session, is started again by the next call.
///
/// # Errors
///
/// If the program cannot be started, exits before it responds, or does not share a revision.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn spawn(child: ServerCommand) -> Result<Client, ConnectError> {
    Client::default_builder().connect(child).await
}

/// Configures a server as a child process.
///
/// ```
/// use turnbuckle_client::stdio::ServerCommand;
///
/// let server = ServerCommand::new("weather-server")
///     .args(["--units", "metric"])
///     .env("STATION", "oslo")
///     .on_stderr(|line| tracing::debug!(line, "weather"));
/// ```
///
/// The command is not run in a shell: the program gets its arguments unchanged. On Windows a batch file must be named
/// with its extension (`npx.cmd`, not `npx`), and is rejected if an argument cannot be quoted for it.
///
/// # Environment
///
/// The child gets a short list of variables that usually contain no secrets, as in the official SDKs, and then the
/// variables of [`env`](Self::env). On Unix these are `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`; `LANG`,
/// `LANGUAGE`, `LC_*`, `TZ`; `TMPDIR` and `XDG_RUNTIME_DIR`. On Windows: `APPDATA`, `COMSPEC`, `HOMEDRIVE`, `HOMEPATH`,
/// `LOCALAPPDATA`, `PATH`, `PATHEXT`, `PROCESSOR_ARCHITECTURE`, `PROGRAMDATA`, `PROGRAMFILES`, `SYSTEMDRIVE`,
/// `SYSTEMROOT`, `TEMP`, `TMP`, `USERNAME`, `USERPROFILE`, `WINDIR`. [`inherit_all_env`](Self::inherit_all_env) passes
/// on all variables, [`env_clear`](Self::env_clear) none.
#[derive(Clone)]
#[must_use = "a command does nothing until it is started"]
pub struct ServerCommand {
    program: OsString,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    inherits: EnvInheritance,
    folder: Option<PathBuf>,
    stderr: StderrMode,
    tap: Option<StderrCallback>,
    kill_timeout: Duration,
    observer: Option<SharedObserver>,
}

/// The handling of the child's stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StderrMode {
    /// Read it, and keep the last 64 KiB: [`Process::stderr_tail`].
    #[default]
    Captured,
    /// Inherit the stderr of this process.
    Inherited,
    /// Discard it.
    Discarded,
    /// Pass it to the caller as a pipe: [`SpawnedProcess::error_output`].
    ///
    /// Only for [`ServerCommand::start`]: a client does not read it.
    Piped,
}

impl ServerCommand {
    /// Creates a command for a program, resolved as the operating system does.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            environment: Vec::new(),
            inherits: EnvInheritance::default(),
            folder: None,
            stderr: StderrMode::default(),
            tap: None,
            kill_timeout: DEFAULT_KILL_TIMEOUT,
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

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets environment variables.
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
    /// The child then gets all secrets in the environment of this process. Prefer [`env`](Self::env) for the variables
    /// it needs.
    pub fn inherit_all_env(mut self) -> Self {
        self.inherits = EnvInheritance::All;
        self
    }

    /// Clears the environment, including variables set before.
    pub fn env_clear(mut self) -> Self {
        self.environment.clear();
        self.inherits = EnvInheritance::Nothing;
        self
    }

    /// Sets the working directory; the program must then be a name or an absolute path.
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Sets the handling of stderr; it is captured by default.
    pub fn stderr(mut self, stderr: StderrMode) -> Self {
        self.stderr = stderr;
        self
    }

    /// Calls `tap` with each line of stderr; only if stderr is captured.
    ///
    /// A slow callback slows the child down. Lines longer than 64 KiB are split, and invalid UTF-8 is replaced. The
    /// text comes from the server: sanitize control characters before you print it to a terminal.
    pub fn on_stderr(mut self, tap: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.tap = Some(StderrCallback::new(tap));
        self
    }

    /// Sets the time that the child may take to exit, and again after SIGTERM; 2 seconds by default.
    pub fn kill_timeout(mut self, kill_timeout: Duration) -> Self {
        self.kill_timeout = kill_timeout;
        self
    }

    /// Reports the start and the end of the process, also after a restart.
    pub fn observer(mut self, observer: Arc<dyn ProcessObserver>) -> Self {
        self.observer = Some(SharedObserver(observer));
        self
    }

    /// Starts the process without connecting to it.
    ///
    /// # Errors
    ///
    /// If the program does not exist or cannot be started.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time and I/O enabled.
    pub fn start(&self) -> Result<SpawnedProcess, SpawnError> {
        self.start_recorded(None)
    }

    /// Starts the process; lines of captured stderr are also recorded.
    pub(crate) fn start_recorded(
        &self,
        recorder: Option<&ConnectionRecorder>,
    ) -> Result<SpawnedProcess, SpawnError> {
        if let Some(observer) = &self.observer {
            observer.0.starting();
        }
        let launcher = self.launcher();
        let failed = |error| SpawnError::new(&self.program, self.folder.as_deref(), error);
        if launcher.is_some() {
            let path = environment::search_path(self.inherits, &self.environment);
            exit::check_exists(&self.program, self.folder.as_deref(), path.as_deref())
                .map_err(failed)?;
        }
        let child = self.command(launcher.as_deref()).spawn().map_err(failed)?;
        let started = process::supervise(
            child,
            self.stderr_output(recorder),
            self.kill_timeout,
            self.observer.clone(),
        );
        if launcher.is_some() {
            process_group::release(&started.input);
        }
        Ok(started)
    }

    /// Returns what happens to the stderr of the process.
    fn stderr_output(&self, recorder: Option<&ConnectionRecorder>) -> StderrOutput {
        if self.stderr == StderrMode::Piped {
            return StderrOutput::Piped;
        }
        let recorder = recorder.cloned();
        let recorder = recorder
            .map(|recorder| StderrCallback::new(move |line: &str| recorder.record_stderr(line)));
        StderrOutput::Lines(self.tap.iter().cloned().chain(recorder).collect())
    }

    /// Returns the entry for the start of the process in a recording. Values of variables are left out.
    pub(crate) fn open_entry(&self) -> OpenEntry {
        let words = std::iter::once(&self.program).chain(&self.args);
        let names = self.environment.iter();
        OpenEntry::program(words.map(|word| word.to_string_lossy().into_owned()))
            .env(names.map(|(name, _)| name.to_string_lossy()))
    }

    /// Returns the launcher of the observer, where processes can replace themselves.
    fn launcher(&self) -> Option<Vec<OsString>> {
        let observer = self.observer.as_ref().filter(|_| cfg!(unix))?;
        observer.0.launcher().filter(|words| !words.is_empty())
    }

    /// Returns the program and its arguments, as the key of the lifecycle cache.
    pub(crate) fn command_line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Returns the command with a launcher in front of it.
    fn command(&self, launcher: Option<&[OsString]>) -> Command {
        let mut words = launcher.into_iter().flatten();
        let mut command = match words.next() {
            Some(launcher) => Command::new(launcher),
            None => Command::new(&self.program),
        };
        if launcher.is_some() {
            command.args(words).arg(&self.program);
        }
        match self.inherits {
            EnvInheritance::All => &mut command,
            EnvInheritance::Nothing => command.env_clear(),
            EnvInheritance::Safe => command.env_clear().envs(environment::safe_variables()),
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
                StderrMode::Captured | StderrMode::Piped => Stdio::piped(),
                StderrMode::Inherited => Stdio::inherit(),
                StderrMode::Discarded => Stdio::null(),
            })
            .kill_on_drop(true);
        ProcessGroup::make_leader(&mut command);
        command
    }
}

/// Prints neither arguments nor values of variables: they may be secrets.
impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("folder", &self.folder)
            .field("stderr", &self.stderr)
            .field("grace", &self.kill_timeout)
            .finish_non_exhaustive()
    }
}
