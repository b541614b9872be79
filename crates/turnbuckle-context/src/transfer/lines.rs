//! Reading lines that may be of any length, without keeping more than is allowed.

use std::io::{self, BufRead};

/// A line as far as it was kept.
pub(super) enum ReadLine<'l> {
    /// All of it, without its end.
    Whole(&'l [u8]),
    /// It was too long.
    TooLong,
}

/// Reads lines into one buffer.
pub(super) struct LineReader<'r> {
    from: &'r mut dyn BufRead,
    buffer: Vec<u8>,
    max_bytes: usize,
    /// The number of the line that was read last, from 1.
    pub(super) number: u64,
}

impl<'r> LineReader<'r> {
    pub(super) fn new(from: &'r mut dyn BufRead, max_bytes: usize) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            max_bytes,
            number: 0,
        }
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<ReadLine<'_>>> {
        self.buffer.clear();
        let mut length = 0;
        loop {
            let available = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                done => done?,
            };
            if available.is_empty() && length == 0 {
                return Ok(None);
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            if length + part.len() <= self.max_bytes {
                self.buffer.extend_from_slice(part);
            }
            length += part.len();
            let is_last = end.is_some() || available.is_empty();
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            // An empty line has no length, but it is a line.
            if is_last {
                self.number += 1;
                let is_whole = length <= self.max_bytes;
                return Ok(Some(if is_whole {
                    ReadLine::Whole(self.buffer.trim_ascii())
                } else {
                    ReadLine::TooLong
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut text: &[u8], max_bytes: usize) -> Vec<Option<String>> {
        let mut lines = LineReader::new(&mut text, max_bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(match line {
                ReadLine::Whole(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                ReadLine::TooLong => None,
            });
        }
        assert_eq!(lines.number, all.len() as u64);
        all
    }

    #[test]
    fn every_line_is_read_with_or_without_its_end() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read(b"", 9), []);
        assert_eq!(read(b"\n", 9), [some("")]);
        assert_eq!(read(b"a\r\n\nb", 9), [some("a"), some(""), some("b")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let read = read(b"12345\n123456\n1", 5);
        assert_eq!(read, [Some("12345".to_owned()), None, Some("1".to_owned())]);
    }
}
