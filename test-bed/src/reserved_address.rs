//! Loopback addresses for programs that cannot choose a port themselves.

use std::{
    env,
    fs::{self, File},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::RangeInclusive,
    process,
    sync::atomic::{AtomicU16, Ordering},
};

use rustix::fs::{FlockOperation, flock};

/// Below the ports that Linux gives to outgoing connections.
const PORTS: RangeInclusive<u16> = 16_000..=31_999;

/// A free loopback address that no other test takes while this value lives.
///
/// Between the moment in which a port is found free and the start of the server another test could take it; so each
/// port has a file that is locked.
#[derive(Debug)]
pub(crate) struct ReservedAddress {
    pub(crate) address: SocketAddr,
    _lock: File,
}

impl ReservedAddress {
    pub(crate) fn new() -> io::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let folder = env::temp_dir().join("turnbuckle-test-ports");
        fs::create_dir_all(&folder)?;
        let count = PORTS.end() - PORTS.start() + 1;
        // Processes begin at different ports.
        let first = (process::id() % u32::from(count)) as u16;
        for _ in 0..count {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let port = PORTS.start() + first.wrapping_add(step) % count;
            let lock = File::create(folder.join(port.to_string()))?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let is_locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_locked && TcpListener::bind(address).is_ok() {
                return Ok(Self {
                    address,
                    _lock: lock,
                });
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }
}
