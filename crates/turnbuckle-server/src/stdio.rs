//! Standard input and output: one message per line, one client, for the life of the process.
//!
//! ```no_run
//! # use turnbuckle_server::{Server, Tool, ToolError};
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let now = Tool::new("now", async || Ok::<_, ToolError>("half past nine".to_owned()));
//!     turnbuckle_server::stdio::serve(Server::new("clock", "1.0.0").tool(now)).await
//! }
//! ```
//!
//! Standard output belongs to the protocol. On Unix the process's own descriptors are put aside: what handlers,
//! libraries and child processes print goes to standard error, and what they try to read is empty. On other systems
//! nothing protects it: print nothing.
//!
//! A thread of its own reads, and runs each handler up to its first pause; what is ready by then is answered without
//! waking anyone. So a handler that computes for long without a pause holds up what comes after it: declare it with
//! [`Tool::blocking`](crate::Tool::blocking).
//!
//! With that thread a runtime on one thread, `#[tokio::main(flavor = "current_thread")]`, is enough for most servers, and
//! starts a little sooner.

#[cfg(not(unix))]
#[path = "stdio/plain.rs"]
mod streams;
#[cfg(unix)]
#[path = "stdio/unix.rs"]
mod streams;

use std::{future::Future, io, sync::Arc, thread};

use tokio::{runtime::Handle, select, sync::oneshot};
use turnbuckle_protocol::{Principal, codec};

use self::streams::{Input, Output, Signals};
use crate::{
    Server,
    lines::{self, Connection, Options, Shutdown, Sink},
};

/// How much is read at once, and written by who reads: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// How much is answered before the client sees any of it: it reads, and sends more, while the rest is being answered.
const STRIDE: usize = 4 * 1024;

/// Serves the client at the other end of standard input and output.
///
/// Returns when the client ends the input and everything it asked for is answered; calls that are still running
/// 5 seconds later are dropped. SIGINT and SIGTERM (elsewhere Ctrl-C) end it too, and running calls get one second.
/// [`Stdio`] has the options.
///
/// Once per process: standard input and output stay with it. After a signal its reading thread may still wait for
/// input; that keeps no process from ending, since it is enough that `main` returns.
///
/// # Errors
///
/// If reading or writing fails for another reason than that the client left.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn serve(server: Server) -> io::Result<()> {
    Stdio::new(server).serve().await
}

/// Serves the client at the other end of standard input and output, with options.
#[must_use = "nothing is served before `serve` is awaited"]
pub struct Stdio {
    server: Server,
    options: Options,
    shutdown: Shutdown,
}

impl Stdio {
    /// Serves with the defaults.
    pub fn new(server: Server) -> Self {
        Self {
            server,
            options: Options::default(),
            shutdown: Shutdown::never(),
        }
    }

    /// Refuses lines of more than this many bytes; 4 MiB by default. A refused line takes no memory.
    pub fn line_limit(mut self, bytes: usize) -> Self {
        self.options.line_limit = bytes;
        self
    }

    /// Limits how many calls may be running at one time; 10,000 by default. Further ones are told that it is busy.
    pub fn max_in_flight(mut self, calls: u32) -> Self {
        self.options.max_in_flight = calls;
        self
    }

    /// Says who the client is, if you know: handlers see it, and what is sealed for it opens for nobody else.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.options.principal = Some(principal);
        self
    }

    /// Gives handlers something along with each request; they find it with [`Context::get`](crate::Context::get).
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.options.extensions.insert(value);
        self
    }

    /// Ends when `wish` resolves, as a signal does: nothing more is read, running calls get one second.
    pub fn shutdown(mut self, wish: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Shutdown::new(Box::pin(wish));
        self
    }

    /// Serves; see [`serve`].
    ///
    /// # Errors
    ///
    /// If reading or writing fails for another reason than that the client left.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time and I/O enabled.
    pub async fn serve(self) -> io::Result<()> {
        let mut signals = Signals::watch()?;
        let mut wish = self.shutdown;
        let shutdown = Shutdown::new(Box::pin(async move {
            select! {
                () = signals.came() => {}
                () = wish.came() => {}
            }
        }));
        let (input, output) = streams::take()?;
        let output = Arc::new(output);
        let connection = Connection::new(self.server, self.options);
        let writing = write_when_needed(connection.sink().clone(), output.clone());
        let reading = {
            let connection = connection.clone();
            in_thread("mcp stdin", move |runtime| {
                read(runtime, &connection, input, &output)
            })?
        };
        lines::run(connection, reading, writing, shutdown).await
    }
}

impl std::fmt::Debug for Stdio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stdio")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Does blocking work in a thread of its own, which nobody waits for at the end of the process.
fn in_thread(
    name: &str,
    work: impl FnOnce(&Handle) -> io::Result<()> + Send + 'static,
) -> io::Result<impl Future<Output = io::Result<()>>> {
    let runtime = Handle::current();
    let (done, outcome) = oneshot::channel();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let outcome = work(&runtime);
            // Whoever served may be gone.
            let _ = done.send(outcome);
        })?;
    Ok(async {
        outcome
            .await
            .unwrap_or_else(|gone| Err(io::Error::other(gone)))
    })
}

fn read(
    runtime: &Handle,
    connection: &Arc<Connection>,
    mut input: Input,
    output: &Output,
) -> io::Result<()> {
    // Handlers are polled here for the first time, and may need timers or tasks.
    let _runtime = runtime.enter();
    let sink = connection.sink();
    let mut lines = codec::lines::Lines::new(connection.line_limit());
    loop {
        let mut rest = input.read()?;
        if sink.is_ended() {
            return Ok(());
        }
        if rest.is_empty() {
            break;
        }
        let mut answered = rest.len();
        while let Some(line) = lines.next(&mut rest) {
            connection.receive(line);
            if sink.is_full() {
                sink.wake();
                runtime.block_on(sink.room());
            }
            if answered - rest.len() >= STRIDE {
                answered = rest.len();
                flush(sink, output);
            }
        }
        flush(sink, output);
    }
    if let Some(line) = lines.finish() {
        connection.receive(line);
        flush(sink, output);
    }
    Ok(())
}

/// Writes what is ready, from here as far as that cannot block: reading goes on whether or not the client reads.
fn flush(sink: &Sink, output: &Output) {
    let Some(batch) = sink.take_now(CHUNK) else {
        return sink.wake();
    };
    match output.write_now(&batch) {
        Ok(written) if written < batch.len() => sink.put_back(batch, written),
        outcome => {
            sink.written(batch, outcome.map(drop));
        }
    }
}

/// Writes what nobody else could, from the first time that there is such: many servers never need this thread.
async fn write_when_needed(sink: Arc<Sink>, output: Arc<Output>) -> io::Result<()> {
    let Some(first) = sink.take(Vec::new()).await? else {
        return Ok(());
    };
    in_thread("mcp stdout", move |runtime| {
        write(runtime, &sink, first, &output)
    })?
    .await
}

fn write(runtime: &Handle, sink: &Sink, first: Vec<u8>, output: &Output) -> io::Result<()> {
    let mut next = Some(first);
    while let Some(batch) = next {
        output.write_all(&batch)?;
        let spare = sink.written(batch, Ok(()));
        next = runtime.block_on(sink.take(spare))?;
    }
    Ok(())
}
