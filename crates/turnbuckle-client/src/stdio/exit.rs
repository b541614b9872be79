//! How a process ended, and what it said last.

use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// By itself, with this code; 0 says that all is well.
    Code(i32),
    /// By this signal; only on Unix.
    Signal(i32),
    /// Nobody saw how.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::Unknown => f.write_str("ended"),
        }
    }
}

/// A server's process is gone.
///
/// Its text names the end of the process and the last lines of its standard error. Those are the server's text: mind
/// control characters before they reach a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Died {
    /// How the process ended.
    pub exit: Exit,
    /// The last lines of its standard error, if it was captured.
    pub last_words: String,
}

impl Died {
    /// How many lines of standard error are repeated, and how many bytes at most.
    const LINES: usize = 10;
    const BYTES: usize = 4096;

    pub(super) fn new(exit: Exit, stderr: &str) -> Self {
        let text = stderr.trim_end();
        let mut from = text
            .rmatch_indices('\n')
            .nth(Self::LINES - 1)
            .map_or(0, |(at, _)| at + 1)
            .max(text.len().saturating_sub(Self::BYTES));
        while !text.is_char_boundary(from) {
            from += 1;
        }
        Self {
            exit,
            last_words: text[from..].to_owned(),
        }
    }
}

impl fmt::Display for Died {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server's process {}", self.exit)?;
        if !self.last_words.is_empty() {
            write!(f, ", after it said:\n{}", self.last_words)?;
        }
        Ok(())
    }
}

impl std::error::Error for Died {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_few_and_short() {
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let wide = "ä".repeat(10_000);

        let few = Died::new(Exit::Code(3), &many);
        let short = Died::new(Exit::Signal(9), &wide);
        let silent = Died::new(Exit::Unknown, "\n");

        assert_eq!(few.last_words.lines().next(), Some("line 90"));
        assert_eq!(few.last_words.lines().count(), 10);
        assert!(
            few.to_string()
                .starts_with("the server's process exited with code 3, after it said:\nline 90\n")
        );
        assert_eq!(short.last_words.len(), 4096);
        assert_eq!(silent.to_string(), "the server's process ended");
    }
}
