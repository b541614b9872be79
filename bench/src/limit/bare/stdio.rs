//! The stdio limit: a blocking read, a blocking write.

use std::io::{BufRead, BufReader, Write};

use super::respond::{Reply, respond};
use crate::Failure;

/// Responds line by line until the input ends.
pub(crate) fn serve() -> Result<(), Failure> {
    let mut input = BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        match respond(&line) {
            Some(Reply::One(mut response)) => {
                // The newline is part of the buffer, so that a line buffer writes once.
                response.push(b'\n');
                output.write_all(&response)?;
            }
            Some(Reply::Steps(steps)) => output.write_all(&steps.write("", "\n"))?,
            None => {}
        }
        line.clear();
    }
    Ok(())
}
