//! HAProxy in front of several HTTP servers.

use std::{
    fmt::Write as _,
    fs,
    net::{SocketAddr, TcpStream},
};

use tempfile::TempDir;

use crate::{
    process::{ServerProcess, StartError, find_program},
    reserved_address::ReservedAddress,
};

/// A balancer that gives each request to the next server, without stickiness.
#[derive(Debug)]
pub struct HaProxy {
    _process: ServerProcess,
    reserved: ReservedAddress,
    _folder: TempDir,
}

impl HaProxy {
    /// Starts a balancer for these servers. With `health_path`, a server that does not respond to it with 200
    /// gets no requests; without, none is checked.
    pub fn start(servers: &[SocketAddr], health_path: Option<&str>) -> Result<Self, StartError> {
        let program = find_program("haproxy", "haproxy", &[])?;
        let folder = TempDir::with_prefix("haproxy")?;
        let reserved = ReservedAddress::new()?;
        let address = reserved.address;
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, settings(address, servers, health_path))?;
        let log = folder.path().join("log");
        let arguments = vec!["-db".into(), "-f".into(), file.into()];
        let mut process = ServerProcess::start(program, arguments, log, None)?;
        process.wait_until(|| TcpStream::connect(address).is_ok())?;
        Ok(Self {
            _process: process,
            reserved,
            _folder: folder,
        })
    }

    /// Returns the address at which the balancer accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.reserved.address
    }
}

/// Streams may be silent for an hour; a request is sent to another server if its server is gone.
fn settings(address: SocketAddr, servers: &[SocketAddr], health_path: Option<&str>) -> String {
    let mut text = format!(
        "defaults
  mode http
  maxconn 2000
  timeout connect 1s
  timeout client 1h
  timeout server 1h
  option redispatch
  retries 2
frontend front
  bind {address}
  default_backend servers
backend servers
  balance roundrobin
"
    );
    let mut check = "";
    if let Some(path) = health_path {
        check = " check inter 200ms fall 2 rise 1";
        // A String takes every write.
        let _ = writeln!(text, "  option httpchk GET {path}");
    }
    for (number, server) in servers.iter().enumerate() {
        let _ = writeln!(text, "  server s{number} {server}{check}");
    }
    text
}
