//! Standard streams on systems where they cannot be replaced.

use std::io::{self, Read, Stdin, Stdout, Write};

use super::BUFFER_BYTES;

/// Uses standard input and output as they are.
pub(super) fn take_standard_streams() -> io::Result<(StdinReader, StdoutWriter)> {
    let input = StdinReader {
        stdin: io::stdin(),
        chunk: vec![0; BUFFER_BYTES],
    };
    Ok((input, StdoutWriter(io::stdout())))
}

/// Standard input.
pub(super) struct StdinReader {
    stdin: Stdin,
    chunk: Vec<u8>,
}

impl StdinReader {
    /// Waits for the next bytes. Empty at the end.
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
pub(super) struct StdoutWriter(Stdout);

impl StdoutWriter {
    /// Writes nothing: it is unknown whether a write blocks, so the writing thread does it.
    pub(super) fn write_now(&self, _: &[u8]) -> io::Result<usize> {
        Ok(0)
    }

    /// Writes everything, and blocks if needed.
    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = self.0.lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }
}

/// Ctrl-C, the request to terminate.
pub(super) struct TerminationSignals(());

impl TerminationSignals {
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self(()))
    }

    pub(super) async fn received(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
