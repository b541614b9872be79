//! The stdio limit: a blocking read, a blocking write.

use std::io::{BufRead, BufReader, Write};

use turnbuckle_bench::Failure;

use crate::answer::answer;

/// Answers line by line until the input ends.
pub(crate) fn serve() -> Result<(), Failure> {
    let mut input = BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(mut answer) = answer(&line) {
            // The newline goes along, so that a line buffer writes once.
            answer.push(b'\n');
            output.write_all(&answer)?;
        }
        line.clear();
    }
    Ok(())
}
