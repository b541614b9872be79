//! A server process in a temporary folder.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// A server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program is not installed.
    #[error("`{program}` is missing; install the Debian package `{package}`")]
    NotInstalled {
        /// The program.
        program: String,
        /// The Debian package that has it.
        package: String,
    },
    /// The server ended, or did not accept connections in time.
    #[error("{program} did not start: {reason}; its log:\n{log}")]
    NotReady {
        /// The program.
        program: String,
        /// What was seen.
        reason: String,
        /// The end of its log.
        log: String,
    },
    /// A file, process or socket could not be made.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The longest wait for a server to accept connections; only a machine that is far too slow reaches it.
const START_TIMEOUT: Duration = Duration::from_secs(120);

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Between the signal that ends a server and `SIGKILL`.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A server process; killed when dropped.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    program: PathBuf,
    arguments: Vec<OsString>,
    log: PathBuf,
    user: Option<&'static str>,
    child: Child,
}

impl ServerProcess {
    /// Starts `program` with its output in the file `log`. The server is killed when the present thread ends, in any way.
    pub(crate) fn start(
        program: PathBuf,
        arguments: Vec<OsString>,
        log: PathBuf,
        user: Option<&'static str>,
    ) -> Result<Self, StartError> {
        let child = spawn(&program, &arguments, &log, user)?;
        Ok(Self {
            program,
            arguments,
            log,
            user,
            child,
        })
    }

    /// Waits until `is_ready` returns true. Fails at once if the server ends.
    pub(crate) fn wait_until(
        &mut self,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<(), StartError> {
        let started = Instant::now();
        while !is_ready() {
            if let Some(status) = self.child.try_wait()? {
                return Err(self.not_ready(format!("it ended with {status}")));
            }
            if started.elapsed() > START_TIMEOUT {
                return Err(self.not_ready(format!("not ready after {START_TIMEOUT:?}")));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Kills the server with `SIGKILL` and waits for its end.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends the server with `SIGTERM`, or with `SIGKILL` if it does not end in time.
    pub(crate) fn terminate(&mut self) -> io::Result<()> {
        self.end_by(Signal::TERM)
    }

    /// Ends the server with a signal, or with `SIGKILL` if it does not end in time.
    pub(crate) fn end_by(&mut self, signal: Signal) -> io::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        self.signal(signal)?;
        let started = Instant::now();
        while self.child.try_wait()?.is_none() {
            if started.elapsed() > STOP_TIMEOUT {
                return self.kill();
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Starts the server again after it ended, with the same arguments.
    pub(crate) fn start_again(&mut self) -> Result<(), StartError> {
        self.terminate()?;
        self.child = spawn(&self.program, &self.arguments, &self.log, self.user)?;
        Ok(())
    }

    /// Stops the server with `SIGSTOP`: its connections stay open and nothing is answered.
    pub(crate) fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Continues after [`ServerProcess::pause`].
    pub(crate) fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(kill_process(pid, signal)?)
    }

    fn not_ready(&self, reason: String) -> StartError {
        let log = fs::read(&self.log).unwrap_or_default();
        let end = &log[log.len().saturating_sub(4096)..];
        StartError::NotReady {
            program: self.program.display().to_string(),
            reason,
            log: String::from_utf8_lossy(end).into_owned(),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.kill();
    }
}

/// `setpriv` of util-linux lets the kernel kill the server when the thread that started it ends, and can change the user.
fn spawn(
    program: &Path,
    arguments: &[OsString],
    log: &Path,
    user: Option<&str>,
) -> io::Result<Child> {
    let log = File::options().create(true).append(true).open(log)?;
    let mut command = Command::new("setpriv");
    if let Some(user) = user {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}

/// Finds a program on `PATH`, in the folder of system programs, or in one of `folders`.
pub(crate) fn find_program(
    program: &str,
    package: &str,
    folders: &[PathBuf],
) -> Result<PathBuf, StartError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .chain(folders.iter().cloned())
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| StartError::NotInstalled {
            program: program.to_owned(),
            package: package.to_owned(),
        })
}

/// Runs a helper program to its end and returns its standard output.
pub(crate) fn run(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let printed = [output.stderr, output.stdout].concat();
    Err(io::Error::other(format!(
        "{} ended with {}: {}",
        command.get_program().to_string_lossy(),
        output.status,
        String::from_utf8_lossy(&printed).trim()
    )))
}
