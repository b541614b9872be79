//! The process's own streams where they cannot be put aside.

use std::io::{self, Read, Stdin, Stdout, Write};

use super::CHUNK;

/// Uses standard input and output as they are.
pub(super) fn take() -> io::Result<(Input, Output)> {
    let input = Input {
        stdin: io::stdin(),
        chunk: vec![0; CHUNK],
    };
    Ok((input, Output(io::stdout())))
}

/// Standard input.
pub(super) struct Input {
    stdin: Stdin,
    chunk: Vec<u8>,
}

impl Input {
    /// Waits for the next bytes; none at the end.
    pub(super) fn read(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.stdin.read(&mut self.chunk) {
                Ok(length) => return Ok(&self.chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Standard output.
pub(super) struct Output(Stdout);

impl Output {
    /// Writes nothing: nobody can tell whether the client reads, and the writing thread waits for it.
    pub(super) fn write_now(&self, _: &[u8]) -> io::Result<usize> {
        Ok(0)
    }

    /// Writes everything, and waits for the client where needed.
    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = self.0.lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }
}

/// Ctrl-C, which asks the process to end.
pub(super) struct Signals(());

impl Signals {
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self(()))
    }

    pub(super) async fn came(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
