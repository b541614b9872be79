//! One PostgreSQL server.

use std::{
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    process::{ServerProcess, StartError, find_program, run},
    reserved_address::ReservedAddress,
};

const PACKAGE: &str = "postgresql";

/// The system user of the Debian package. The server refuses to run as root.
const SYSTEM_USER: &str = "postgres";

/// The longest wait for the shared memory of a killed server.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(60);

/// A PostgreSQL server that trusts every connection, with the superuser `postgres`.
#[derive(Debug)]
pub struct PostgresServer {
    process: ServerProcess,
    programs: PathBuf,
    reserved: ReservedAddress,
    _folder: TempDir,
}

impl PostgresServer {
    /// Creates an empty database cluster and starts its server.
    pub fn start() -> Result<Self, StartError> {
        let program = find_program("postgres", PACKAGE, &installed_versions())?;
        // On Debian the program on PATH can be a link into the folder that has the others.
        let program = fs::canonicalize(program)?;
        let programs = program.parent().unwrap_or(Path::new("/")).to_owned();
        Self::start_from(&programs)
    }

    fn start_from(programs: &Path) -> Result<Self, StartError> {
        let folder = TempDir::with_prefix("postgres")?;
        let user = rustix::process::geteuid().is_root().then_some(SYSTEM_USER);
        if let Some(user) = user {
            let id = |option| run(Command::new("id").args([option, user]));
            let owner = id("-u")?.trim().parse().map_err(io::Error::other)?;
            let group = id("-g")?.trim().parse().map_err(io::Error::other)?;
            chown(folder.path(), Some(owner), Some(group))?;
        }
        let data = folder.path().join("data");
        let log = folder.path().join("log");
        run(command_as(user, &programs.join("initdb"))
            .args(["--auth", "trust", "--username", "postgres", "--no-sync"])
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8", "--pgdata"])
            .arg(&data)
            .current_dir(folder.path()))?;

        let reserved = ReservedAddress::new()?;
        let address = reserved.address;
        let arguments = server_arguments(&data, address, folder.path());
        let mut process = ServerProcess::start(programs.join("postgres"), arguments, log, user)?;
        process.wait_until(|| is_ready(programs, address))?;
        Ok(Self {
            process,
            programs: programs.to_owned(),
            reserved,
            _folder: folder,
        })
    }

    /// Returns the address at which the server accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.reserved.address
    }

    /// Returns the URL of the database `postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address())
    }

    /// Runs statements with `psql` and returns their rows, without headings.
    pub fn execute(&self, statements: &str) -> io::Result<String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        command.args(["--set", "ON_ERROR_STOP=1", "--command", statements]);
        Ok(run(command.arg(self.url()))?.trim_end().to_owned())
    }

    /// Stops the server with `SIGSTOP`. Processes of open connections continue.
    pub fn pause(&self) -> io::Result<()> {
        self.process.pause()
    }

    /// Continues after [`PostgresServer::pause`].
    pub fn resume(&self) -> io::Result<()> {
        self.process.resume()
    }

    /// Ends the server with `SIGKILL`.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()
    }

    /// Starts the server again at the same address; ends it first if it runs, and disconnects its clients.
    pub fn restart(&mut self) -> Result<(), StartError> {
        let (programs, address) = (&self.programs, self.address());
        // `SIGTERM` would wait for the clients.
        self.process.end_by(Signal::INT)?;
        let started = Instant::now();
        loop {
            self.process.start_again()?;
            match self.process.wait_until(|| is_ready(programs, address)) {
                // Processes of connections outlive a killed server for a moment.
                Err(StartError::NotReady { log, .. })
                    if log.contains("is still in use") && started.elapsed() < MEMORY_TIMEOUT =>
                {
                    thread::sleep(Duration::from_millis(100));
                }
                result => return result,
            }
        }
    }
}

fn server_arguments(data: &Path, address: SocketAddr, sockets: &Path) -> Vec<OsString> {
    let port = address.port().to_string();
    let mut arguments: Vec<OsString> = vec!["-D".into(), data.into(), "-p".into(), port.into()];
    let mut folder = OsString::from("unix_socket_directories=");
    folder.push(sockets);
    arguments.extend(["-c".into(), folder]);
    let listen = format!("listen_addresses={}", address.ip());
    arguments.extend(["-c".into(), listen.into()]);
    arguments
}

fn is_ready(programs: &Path, address: SocketAddr) -> bool {
    let mut command = Command::new(programs.join("pg_isready"));
    command.arg("-h").arg(address.ip().to_string());
    run(command.arg("-p").arg(address.port().to_string())).is_ok()
}

/// Returns a command that runs as this user.
fn command_as(user: Option<&str>, program: &Path) -> Command {
    let Some(user) = user else {
        return Command::new(program);
    };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", "--"]);
    command.arg(program);
    command
}

/// Debian has the programs of each version in a folder that is not on `PATH`.
fn installed_versions() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql");
    let mut folders: Vec<_> = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    folders.sort();
    folders.reverse();
    folders
}
