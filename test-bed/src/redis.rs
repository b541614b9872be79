//! One Redis server.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    process::{ServerProcess, StartError, find_program, run},
    reserved_address::ReservedAddress,
};

pub(crate) const PACKAGE: &str = "redis-server";

const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// A Redis server without persistence, unless its arguments turn it on.
#[derive(Debug)]
pub struct RedisServer {
    process: ServerProcess,
    reserved: ReservedAddress,
    _folder: TempDir,
}

impl RedisServer {
    /// Starts a server that keeps everything in memory.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(&[])
    }

    /// Starts a server with further arguments, such as `["--appendonly", "yes"]`.
    pub fn start_with(arguments: &[&str]) -> Result<Self, StartError> {
        let reserved = ReservedAddress::new()?;
        let address = reserved.address;
        let program = find_program("redis-server", PACKAGE, &[])?;
        let folder = TempDir::with_prefix("redis")?;
        let mut all = server_arguments(address, folder.path());
        all.extend(arguments.iter().map(OsString::from));
        let log = folder.path().join("log");
        let mut process = ServerProcess::start(program, all, log, None)?;
        process.wait_until(|| is_ready(address))?;
        Ok(Self {
            process,
            reserved,
            _folder: folder,
        })
    }

    /// Returns the address at which the server accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.reserved.address
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Runs a command with `redis-cli` and returns what it prints.
    pub fn command(&self, words: &[&str]) -> io::Result<String> {
        redis_cli(self.address(), words)
    }

    /// Stops the server with `SIGSTOP`: its connections stay open and nothing is answered.
    pub fn pause(&self) -> io::Result<()> {
        self.process.pause()
    }

    /// Continues after [`RedisServer::pause`].
    pub fn resume(&self) -> io::Result<()> {
        self.process.resume()
    }

    /// Ends the server with `SIGKILL`.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()
    }

    /// Starts the server again at the same address; ends it first with `SIGTERM` if it runs. Without the argument
    /// `--appendonly yes` it is empty afterwards.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.process.start_again()?;
        let address = self.address();
        self.process.wait_until(|| is_ready(address))
    }
}

/// Returns the arguments of every server: its address and folder, and no snapshots.
fn server_arguments(address: SocketAddr, folder: &Path) -> Vec<OsString> {
    let port = address.port().to_string();
    let ip = address.ip().to_string();
    let mut arguments: Vec<OsString> = ["--port", &port, "--bind", &ip, "--save", ""]
        .map(OsString::from)
        .into();
    arguments.extend(["--dir".into(), folder.into()]);
    arguments
}

/// Returns whether a server responds at this address; one that wants a password also does.
pub(crate) fn is_ready(address: SocketAddr) -> bool {
    let ping = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PING_TIMEOUT))?;
        stream.write_all(b"PING\r\n")?;
        let mut response = [0; 7];
        stream.read_exact(&mut response)?;
        io::Result::Ok(response)
    };
    ping().is_ok_and(|response| &response == b"+PONG\r\n" || response.starts_with(b"-NOAUTH"))
}

/// Runs a command with `redis-cli` and returns what it prints; an error reply is an error.
pub(crate) fn redis_cli(address: SocketAddr, words: &[&str]) -> io::Result<String> {
    let program = find_program("redis-cli", PACKAGE, &[]).map_err(io::Error::other)?;
    let mut command = Command::new(program);
    command.args(["-e", "-h"]).arg(address.ip().to_string());
    command
        .arg("-p")
        .arg(address.port().to_string())
        .args(words);
    Ok(run(&mut command)?.trim_end().to_owned())
}
