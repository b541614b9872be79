//! A TCP proxy that delays, holds or breaks connections.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::net::sockopt::set_socket_linger;

/// What a [`FaultProxy`] does with connections and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// Forwards everything.
    None,
    /// Accepts connections and forwards nothing; what arrives is forwarded later, under another fault.
    Hold,
    /// Resets all connections, also new ones.
    Reset,
    /// Forwards everything this much later, in both directions.
    Delay(Duration),
    /// Forwards what the client sends, and resets the connection in place of the first bytes that the server sends.
    LoseResponses,
    /// Resets a connection once this many more bytes of the server were forwarded on it.
    CutAfter(usize),
}

/// A TCP proxy on a loopback port in front of one server.
///
/// A fault applies at once to open connections, too. The bytes that were forwarded before are not affected.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    fault: NetworkFault,
    /// Counts the changes of `fault`, so that a repeated `CutAfter` counts again.
    changes: u64,
    is_closed: bool,
    connections: Vec<Connection>,
    next_id: u64,
}

/// Both sockets of a connection.
#[derive(Debug)]
struct Connection {
    id: u64,
    client: TcpStream,
    server: TcpStream,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

impl FaultProxy {
    /// Starts a proxy in front of this server. Connections are opened for each client, so the server may start later.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server,
            state: Mutex::new(State {
                fault: NetworkFault::None,
                changes: 0,
                is_closed: false,
                connections: Vec::new(),
                next_id: 0,
            }),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    /// Returns the address at which the proxy accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Applies a fault until the next one; [`NetworkFault::None`] ends it.
    pub fn set(&self, fault: NetworkFault) {
        let mut state = self.shared.lock();
        state.fault = fault;
        state.changes += 1;
        if fault == NetworkFault::Reset {
            state.reset_all();
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closed = true;
        state.reset_all();
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the thread that accepts connections.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            if self.lock().is_closed {
                return;
            }
            // A connection that was reset before it was accepted is not an error of the proxy.
            if let Ok((client, _)) = accepted {
                let shared = Arc::clone(self);
                thread::spawn(move || shared.serve(client));
            }
        }
    }

    fn serve(self: Arc<Self>, client: TcpStream) {
        if self.wait_while_held().fault == NetworkFault::Reset {
            reset(&client);
            return;
        }
        let Ok(server) = TcpStream::connect(self.server) else {
            reset(&client);
            return;
        };
        let Ok((id, to_server, to_client)) = self.register(client, server) else {
            return;
        };
        let forward = Arc::clone(&self);
        let requests = thread::spawn(move || forward.copy(id, Direction::ToServer, to_server));
        self.copy(id, Direction::ToClient, to_client);
        // A panic in the other thread has been printed; the connection ends either way.
        let _ = requests.join();
        self.lock().remove(id);
    }

    /// Adds a connection to the list and returns its id and the two pairs of sockets to copy between.
    fn register(
        &self,
        client: TcpStream,
        server: TcpStream,
    ) -> io::Result<(u64, [TcpStream; 2], [TcpStream; 2])> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let to_server = [client.try_clone()?, server.try_clone()?];
        let to_client = [server.try_clone()?, client.try_clone()?];
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        let connection = Connection { id, client, server };
        if state.is_closed || state.fault == NetworkFault::Reset {
            connection.reset();
        } else {
            state.connections.push(connection);
        }
        Ok((id, to_server, to_client))
    }

    /// Copies bytes until either side closes or a fault ends the connection.
    fn copy(&self, id: u64, direction: Direction, [mut from, mut to]: [TcpStream; 2]) {
        let mut buffer = vec![0; 64 * 1024];
        let mut counted = Counted::default();
        loop {
            let length = match from.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => length,
            };
            let allowed = self.wait_for_permission(direction, length, &mut counted);
            let written = to.write_all(&buffer[..allowed]);
            if allowed < length {
                if let Some(connection) = self.lock().remove(id) {
                    connection.reset();
                }
                return;
            }
            if written.is_err() {
                break;
            }
        }
        // After a reset, a shutdown would let the peer see an orderly end.
        if self.lock().has(id) {
            // Fails if the other side has closed as well.
            let _ = to.shutdown(Shutdown::Write);
            let _ = from.shutdown(Shutdown::Read);
        }
    }

    /// Waits as long as the fault demands, and returns how many of `length` bytes may pass; if fewer, the connection
    /// ends.
    fn wait_for_permission(
        &self,
        direction: Direction,
        length: usize,
        counted: &mut Counted,
    ) -> usize {
        let state = self.wait_while_held();
        let (fault, changes) = (state.fault, state.changes);
        drop(state);
        match (fault, direction) {
            (NetworkFault::None | NetworkFault::Hold, _) => length,
            (NetworkFault::LoseResponses | NetworkFault::CutAfter(_), Direction::ToServer) => {
                length
            }
            (NetworkFault::Reset, _) | (NetworkFault::LoseResponses, Direction::ToClient) => 0,
            (NetworkFault::Delay(duration), _) => {
                thread::sleep(duration);
                length
            }
            (NetworkFault::CutAfter(limit), Direction::ToClient) => {
                counted.take(limit, changes, length)
            }
        }
    }

    /// Returns the state once the fault is not [`NetworkFault::Hold`].
    fn wait_while_held(&self) -> MutexGuard<'_, State> {
        let held = |state: &mut State| state.fault == NetworkFault::Hold && !state.is_closed;
        self.changed
            .wait_while(self.lock(), held)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that a connection forwarded under the present [`NetworkFault::CutAfter`].
#[derive(Default)]
struct Counted {
    changes: u64,
    bytes: usize,
}

impl Counted {
    /// Returns how many of `length` bytes may pass.
    fn take(&mut self, limit: usize, changes: u64, length: usize) -> usize {
        if self.changes != changes {
            *self = Self { changes, bytes: 0 };
        }
        let allowed = length.min(limit.saturating_sub(self.bytes));
        self.bytes += allowed;
        allowed
    }
}

impl State {
    fn has(&self, id: u64) -> bool {
        self.connections
            .iter()
            .any(|connection| connection.id == id)
    }

    fn remove(&mut self, id: u64) -> Option<Connection> {
        let index = self
            .connections
            .iter()
            .position(|connection| connection.id == id)?;
        Some(self.connections.swap_remove(index))
    }

    fn reset_all(&mut self) {
        for connection in self.connections.drain(..) {
            connection.reset();
        }
    }
}

impl Connection {
    fn reset(&self) {
        reset(&self.client);
        reset(&self.server);
    }
}

/// Makes the peer see a reset: the socket is closed, without lingering, when its last copy is dropped, and reading
/// threads end at once.
fn reset(stream: &TcpStream) {
    // Both fail only on a socket that is closed already.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
    let _ = stream.shutdown(Shutdown::Read);
}
