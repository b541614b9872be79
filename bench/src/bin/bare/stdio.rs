//! The stdio limit: a blocking read, a blocking write.

use std::io::{BufRead, BufReader, Write};

use turnbuckle_bench::Failure;

use crate::answer::{Answer, answer};

/// Answers line by line until the input ends.
pub(crate) fn serve() -> Result<(), Failure> {
    let mut input = BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        match answer(&line) {
            Some(Answer::One(mut answer)) => {
                // The newline goes along, so that a line buffer writes once.
                answer.push(b'\n');
                output.write_all(&answer)?;
            }
            Some(Answer::Steps(steps)) => output.write_all(&steps.write("", "\n"))?,
            None => {}
        }
        line.clear();
    }
    Ok(())
}
