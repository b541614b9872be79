//! Standard streams on Unix: replaced, so that no other code uses them.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
};

use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tokio::{
    select,
    signal::unix::{Signal, SignalKind, signal},
};

use super::BUFFER_BYTES;

/// Bytes that can be written to a ready pipe without blocking.
const ATOMIC_WRITE_BYTES: usize = 4096;

/// Takes over standard input and output.
///
/// Later output of other code goes to standard error, including buffered output. Child processes inherit an empty
/// standard input.
pub(super) fn take_standard_streams() -> io::Result<(StdinReader, StdoutWriter)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    let input = StdinReader {
        file: input.into(),
        chunk: Vec::with_capacity(BUFFER_BYTES),
    };
    Ok((input, StdoutWriter(output.into())))
}

/// The original standard input.
pub(super) struct StdinReader {
    file: File,
    /// The read buffer. It is not zeroed, because small messages touch little of it.
    chunk: Vec<u8>,
}

impl StdinReader {
    /// Waits for the next bytes. Empty at the end.
    pub(super) fn read(&mut self) -> io::Result<&[u8]> {
        loop {
            self.chunk.clear();
            match rustix::io::read(&self.file, spare_capacity(&mut self.chunk)) {
                Ok(_) => return Ok(&self.chunk),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(&self.file, PollFlags::IN)?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The original standard output.
pub(super) struct StdoutWriter(File);

impl StdoutWriter {
    /// Writes as much as possible without blocking, and returns the number of bytes.
    pub(super) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        for chunk in bytes.chunks(ATOMIC_WRITE_BYTES) {
            if !self.is_writable() {
                break;
            }
            self.write_all(chunk)?;
            written += chunk.len();
        }
        Ok(written)
    }

    /// Returns whether a chunk can be written without blocking.
    fn is_writable(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::OUT)];
        let no_wait = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut fds, Some(&no_wait)).is_ok() && fds[0].revents() == PollFlags::OUT
    }

    /// Writes everything, and blocks if needed.
    pub(super) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.0).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A parent that shares the stream may have made it non-blocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.0, PollFlags::OUT)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn wait(file: &File, what: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(file, what)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The signals that request termination.
pub(super) struct TerminationSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl TerminationSignals {
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn received(&mut self) {
        select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
