//! Private keys in PEM with the same prefix on each line: a line number, a diff sign, a comment or quotation marker, the start of
//! a log line.
//!
//! Blocks without a prefix are found by a pattern.

use std::ops::Range;

use super::rule::lines;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// Lines of a key are 64 to 76 characters long, except for the last one.
const MIN_LINE_BYTES: usize = 16;

/// A block before its end.
struct OpenBlock<'t> {
    prefix: &'t str,
    start: usize,
    /// The end of the last line that certainly belongs to the key.
    end: Option<usize>,
}

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<OpenBlock<'_>> = None;
    for (offset, line) in lines(text) {
        if let Some(block) = &mut open {
            match classify(line, block.prefix) {
                BlockLine::Body(end) => block.end = Some(offset + end),
                BlockLine::Between => {}
                BlockLine::End(end) => {
                    found.extend(block.end.map(|_| block.start..offset + end));
                    open = None;
                }
                BlockLine::Other => {
                    found.extend(block.end.map(|end| block.start..end));
                    open = None;
                }
            }
        }
        if open.is_none() {
            open = begin(line).map(|at| OpenBlock {
                prefix: &line[..at],
                start: offset + at,
                end: None,
            });
        }
    }
    found.extend(open.and_then(|block| Some(block.start..block.end?)));
    found
}

/// Returns the position of the header of a private key, if it has a prefix and only decoration follows.
fn begin(line: &str) -> Option<usize> {
    let at = line.find(BEGIN)?;
    let (name, after) = line[at + BEGIN.len()..].split_once("-----")?;
    let is_key = name.ends_with("PRIVATE KEY") || name.ends_with("PRIVATE KEY BLOCK");
    let has_prefix = !line[..at].trim().is_empty();
    (is_key && has_prefix && after.trim_matches(is_decoration).is_empty()).then_some(at)
}

enum BlockLine {
    /// A line of the key, and its end.
    Body(usize),
    /// A header, an empty line, or a short line that may be the last one.
    Between,
    /// The last line of the block, and its end.
    End(usize),
    Other,
}

fn classify(line: &str, prefix: &str) -> BlockLine {
    let Some(at) = skip_prefix(line, prefix) else {
        return BlockLine::Other;
    };
    let rest = line[at..].trim_end_matches(is_decoration);
    let end = at + rest.len();
    let content = rest.trim_start_matches(is_decoration);
    let is_base64 = content.bytes().all(is_base64);
    if content.starts_with(END) {
        BlockLine::End(end)
    } else if is_base64 && content.len() >= MIN_LINE_BYTES {
        BlockLine::Body(end)
    } else if is_base64 || is_header(content) {
        BlockLine::Between
    } else {
        BlockLine::Other
    }
}

/// Returns the position after the prefix of the block. Numbers and white space may differ.
fn skip_prefix(line: &str, prefix: &str) -> Option<usize> {
    let run = |bytes: &[u8], at: usize, is: fn(&u8) -> bool| {
        at + bytes[at..].iter().take_while(|byte| is(byte)).count()
    };
    let (line, prefix) = (line.as_bytes(), prefix.as_bytes());
    let mut at = run(line, 0, u8::is_ascii_whitespace);
    let mut done = run(prefix, 0, u8::is_ascii_whitespace);
    while let Some(&expected) = prefix.get(done) {
        let kind: fn(&u8) -> bool = match expected {
            byte if byte.is_ascii_digit() => u8::is_ascii_digit,
            byte if byte.is_ascii_whitespace() => u8::is_ascii_whitespace,
            // grep writes `:` after a match and `-` after a context line.
            b':' | b'-' => |byte| matches!(byte, b':' | b'-'),
            byte if line.get(at) == Some(&byte) => {
                (at, done) = (at + 1, done + 1);
                continue;
            }
            _ => return None,
        };
        let next = run(line, at, kind);
        // An empty line may lack its trailing space.
        if next == at && !(at == line.len() && expected.is_ascii_whitespace()) {
            return None;
        }
        // Five dashes belong to the block, not to the prefix.
        let dashes = run(prefix, done, kind) - done;
        at = if expected == b'-' {
            next.min(at + dashes)
        } else {
            next
        };
        done += dashes;
    }
    Some(at)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// `Proc-Type: 4,ENCRYPTED`
fn is_header(content: &str) -> bool {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    content
        .split_once(": ")
        .is_some_and(|(name, _)| is_name(name))
}

/// Returns whether a character is white space, a quote or punctuation around a line in code or in a table.
fn is_decoration(char: char) -> bool {
    char.is_whitespace() || matches!(char, '"' | '\'' | '`' | ',' | ';' | '|' | '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_white_space_of_a_prefix_may_differ() {
        assert_eq!(skip_prefix(" 10 | abc", "  9 | "), Some(6));
        assert_eq!(skip_prefix("key-12-abc", "key:1:"), Some(7));
        assert_eq!(skip_prefix("-abc", "-"), Some(1));
        assert_eq!(skip_prefix("------END", "-"), Some(1));
        assert_eq!(skip_prefix("#", "# "), Some(1));
        assert_eq!(skip_prefix("x abc", "# "), None);
        assert_eq!(skip_prefix("→abc", "é→"), None);
    }
}
