//! The process's own streams on Unix: put aside, so that nobody else writes to them or reads from them.

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

use super::CHUNK;

/// What goes as a whole into a pipe that has room for anything, without waiting.
const PIECE: usize = 4096;

/// Takes standard input and output away from everyone else.
///
/// What is printed from now on goes to standard error; also what was printed before and is still in a buffer. Child
/// processes that inherit standard input find it empty instead of eating messages.
pub(super) fn take() -> io::Result<(Input, Output)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    let input = Input {
        file: input.into(),
        chunk: Vec::with_capacity(CHUNK),
    };
    Ok((input, Output(output.into())))
}

/// What was standard input.
pub(super) struct Input {
    file: File,
    /// What was read last. It is not cleared in advance: most of it is never touched by small messages.
    chunk: Vec<u8>,
}

impl Input {
    /// Waits for the next bytes; none at the end.
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

/// What was standard output.
pub(super) struct Output(File);

impl Output {
    /// Writes as much as it can without waiting for the client, and says how much that was.
    pub(super) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        for piece in bytes.chunks(PIECE) {
            if !self.has_room() {
                break;
            }
            self.write_all(piece)?;
            written += piece.len();
        }
        Ok(written)
    }

    /// Says whether a piece can be written without waiting for the client.
    fn has_room(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::OUT)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents() == PollFlags::OUT
    }

    /// Writes everything, and waits for the client where needed.
    pub(super) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.0).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A parent may share its end of the stream with us, and has made it non-blocking for itself.
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

/// The signals that ask the process to end.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn came(&mut self) {
        select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
