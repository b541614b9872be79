//! A Redis primary with a replica and three sentinels.

use std::{
    fmt::Write as _,
    fs, io,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    process::{ServerProcess, StartError, find_program},
    redis::{self, RedisServer, redis_cli},
    reserved_address::ReservedAddress,
};

/// The name under which the sentinels know the primary.
const GROUP: &str = "primary";

const SENTINELS: usize = 3;

/// As long as a failover may take on a slow machine; usually it takes about two seconds.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Two Redis servers, one replicating the other, watched by three sentinels that fail over after one second.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    _process: ServerProcess,
    reserved: ReservedAddress,
    _folder: TempDir,
}

impl RedisSentinel {
    /// Starts the servers and waits until every sentinel knows the replica and the other sentinels.
    pub fn start() -> Result<Self, StartError> {
        let primary = RedisServer::start()?;
        let address = primary.address();
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let replica = RedisServer::start_with(&["--replicaof", &ip, &port])?;
        let mut sentinels = Vec::new();
        for _ in 0..SENTINELS {
            sentinels.push(Sentinel::start(address)?);
        }
        let group = Self {
            servers: vec![primary, replica],
            sentinels,
        };
        wait_for("the sentinels to find each other", || {
            group.sentinels.iter().all(Sentinel::is_complete)
        })?;
        Ok(group)
    }

    /// Returns the addresses of the sentinels.
    pub fn sentinels(&self) -> Vec<SocketAddr> {
        self.sentinels
            .iter()
            .map(|one| one.reserved.address)
            .collect()
    }

    /// Returns the name under which the sentinels know the primary.
    pub fn group(&self) -> &'static str {
        GROUP
    }

    /// Returns the address of the present primary, as the sentinels tell.
    pub fn primary(&self) -> io::Result<SocketAddr> {
        let asked = &self.sentinels[0];
        let printed = redis_cli(
            asked.reserved.address,
            &["SENTINEL", "get-master-addr-by-name", GROUP],
        )?;
        printed
            .replace('\n', ":")
            .parse()
            .map_err(|_| io::Error::other(format!("the sentinel answered {printed:?}")))
    }

    /// Kills the primary and waits until the sentinels have made the replica the primary; returns its address.
    pub fn fail_over(&mut self) -> io::Result<SocketAddr> {
        let before = self.primary()?;
        if let Some(server) = self.server_at(before) {
            server.kill()?;
        }
        wait_for("a failover", || {
            self.primary().is_ok_and(|now| now != before)
        })?;
        let after = self.primary()?;
        wait_for("the new primary to accept writes", || {
            redis_cli(after, &["ROLE"]).is_ok_and(|role| role.starts_with("master"))
        })?;
        Ok(after)
    }

    /// Returns the server with this address, to pause or restart it.
    pub fn server_at(&mut self, address: SocketAddr) -> Option<&mut RedisServer> {
        self.servers
            .iter_mut()
            .find(|server| server.address() == address)
    }
}

impl Sentinel {
    fn start(primary: SocketAddr) -> Result<Self, StartError> {
        let program = find_program("redis-server", redis::PACKAGE, &[])?;
        let folder = TempDir::with_prefix("sentinel")?;
        let reserved = ReservedAddress::new()?;
        let address = reserved.address;
        let mut settings = format!(
            "port {}\nbind {}\ndir {}\n",
            address.port(),
            address.ip(),
            folder.path().display()
        );
        let (ip, port) = (primary.ip(), primary.port());
        // A String takes every write.
        let _ = writeln!(settings, "sentinel monitor {GROUP} {ip} {port} 2");
        let _ = writeln!(settings, "sentinel down-after-milliseconds {GROUP} 1000");
        let _ = writeln!(settings, "sentinel failover-timeout {GROUP} 5000");
        let file = folder.path().join("sentinel.conf");
        fs::write(&file, settings)?;
        let log = folder.path().join("log");
        let arguments = vec![file.into(), "--sentinel".into()];
        let mut process = ServerProcess::start(program, arguments, log, None)?;
        process.wait_until(|| redis::is_ready(address))?;
        Ok(Self {
            _process: process,
            reserved,
            _folder: folder,
        })
    }

    /// Returns whether this sentinel knows the replica and the other sentinels.
    fn is_complete(&self) -> bool {
        let others = format!("slaves=1,sentinels={SENTINELS}");
        redis_cli(self.reserved.address, &["INFO", "sentinel"])
            .is_ok_and(|answer| answer.contains("status=ok") && answer.contains(&others))
    }
}

fn wait_for(what: &str, mut is_done: impl FnMut() -> bool) -> io::Result<()> {
    let started = Instant::now();
    while !is_done() {
        if started.elapsed() > FAILOVER_TIMEOUT {
            let message = format!("waited {FAILOVER_TIMEOUT:?} for {what}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
