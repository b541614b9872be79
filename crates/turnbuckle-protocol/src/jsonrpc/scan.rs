//! The single pass over the bytes of a message.
//!
//! Checks the JSON grammar without recursion and without building values. Callers that need the positions of members
//! iterate over an object with [`Scanner::first_key`] and [`Scanner::next_key`]; everything else is skipped with
//! [`Scanner::skip_value`].

use super::{
    RpcError,
    json_string::{long_plain_length, plain_length},
};

/// The maximum number of open arrays and objects in a message.
pub const MAX_DEPTH: usize = 128;

/// The reason why the bytes are not JSON, and the offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanError {
    what: &'static str,
    at: usize,
}

impl From<ScanError> for RpcError {
    fn from(ScanError { what, at }: ScanError) -> Self {
        Self::parse_error(format!("not JSON: {what} at byte {at}"))
    }
}

/// A byte range of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The content between the quotes of a string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) span: Span,
    pub(super) escaped: bool,
}

/// A position in the text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner at the first byte that is not whitespace.
    ///
    /// Positions fit in 32 bits, because longer input is rejected.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, ScanError> {
        let text = std::str::from_utf8(bytes).map_err(|error| ScanError {
            what: "invalid UTF-8",
            at: error.valid_up_to(),
        })?;
        Self::of_text(text)
    }

    /// Like [`new`](Self::new), for bytes that are known to be UTF-8.
    pub(crate) fn of_text(text: &'a str) -> Result<Self, ScanError> {
        let at = text.len();
        if u32::try_from(at).is_err() {
            let what = "more than 4 GiB";
            return Err(ScanError { what, at });
        }
        let mut scanner = Self { text, at: 0 };
        scanner.skip_whitespace();
        Ok(scanner)
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start..span.end]
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Enters the current object and returns its first key, or `None` if it is empty.
    ///
    /// The key excludes its quotes; afterwards the scanner is at the value.
    pub(crate) fn first_key(&mut self) -> Result<Option<Key>, ScanError> {
        self.at += 1;
        match self.token() {
            Some(b'}') => Ok(None),
            Some(b'"') => self.key().map(Some),
            _ => self.unexpected("expected a member name or `}`"),
        }
    }

    /// Advances from a value to the next key, or leaves the object.
    pub(crate) fn next_key(&mut self) -> Result<Option<Key>, ScanError> {
        match self.token() {
            Some(b'}') => Ok(None),
            Some(b',') => match self.token() {
                Some(b'"') => self.key().map(Some),
                _ => self.unexpected("expected a member name"),
            },
            _ => self.unexpected("expected `,` or `}`"),
        }
    }

    /// Enters the current array. Returns whether it has an entry.
    pub(crate) fn first_entry(&mut self) -> Result<bool, ScanError> {
        self.at += 1;
        self.skip_whitespace();
        Ok(!self.take(b']'))
    }

    /// Advances from a value to the next entry, or leaves the array.
    pub(crate) fn next_entry(&mut self) -> Result<bool, ScanError> {
        match self.token() {
            Some(b']') => Ok(false),
            Some(b',') => {
                self.skip_whitespace();
                Ok(true)
            }
            _ => self.unexpected("expected `,` or `]`"),
        }
    }

    /// Checks and skips one value, which is inside `depth` open containers.
    pub(crate) fn skip_value(&mut self, depth: usize) -> Result<Span, ScanError> {
        let start = self.at;
        let mut open = Nesting::inside(depth);
        loop {
            let entered = match self.peek() {
                Some(b'{') => {
                    open.push(Container::RawObject, self)?;
                    self.first_key()?.is_some()
                }
                Some(b'[') => {
                    open.push(Container::Array, self)?;
                    self.first_entry()?
                }
                _ => {
                    self.skip_scalar()?;
                    self.leave_finished(&mut open)?;
                    if open.is_empty() {
                        break;
                    }
                    continue;
                }
            };
            if !entered {
                open.pop();
                self.leave_finished(&mut open)?;
                if open.is_empty() {
                    break;
                }
            }
        }
        Ok(Span {
            start,
            end: self.at,
        })
    }

    /// Like [`skip_value`](Self::skip_value), and returns the text of the value.
    pub(super) fn pass(&mut self, depth: usize) -> Result<&'a str, ScanError> {
        let span = self.skip_value(depth)?;
        Ok(self.slice(span))
    }

    /// Checks that only whitespace follows.
    pub(crate) fn finish(&mut self) -> Result<(), ScanError> {
        self.skip_whitespace();
        match self.peek() {
            None => Ok(()),
            Some(_) => self.error("text after the end of the message"),
        }
    }

    /// Leaves every container that ends here, up to the next value or the end of the outermost container.
    fn leave_finished(&mut self, open: &mut Nesting) -> Result<(), ScanError> {
        while let Some(container) = open.top() {
            let more = match container {
                Container::RawObject => self.next_key()?.is_some(),
                Container::Array => self.next_entry()?,
            };
            if more {
                break;
            }
            open.pop();
        }
        Ok(())
    }

    fn skip_scalar(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.skip_string().map(drop)
            }
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            Some(b't') => self.skip_word("true"),
            Some(b'f') => self.skip_word("false"),
            Some(b'n') => self.skip_word("null"),
            Some(_) => self.error("expected a value"),
            None => self.error("the text ends where a value should be"),
        }
    }

    /// Scans a key after its opening quote, up to the value.
    fn key(&mut self) -> Result<Key, ScanError> {
        let key = self.skip_string()?;
        match self.token() {
            Some(b':') => self.skip_whitespace(),
            _ => return self.unexpected("expected `:`"),
        }
        Ok(key)
    }

    /// Scans a string after its opening quote.
    #[inline]
    fn skip_string(&mut self) -> Result<Key, ScanError> {
        let start = self.at;
        self.at += plain_length(&self.text.as_bytes()[start..]);
        let escaped = self.peek() != Some(b'"');
        if escaped {
            self.skip_escaped()?;
        }
        let end = self.at;
        self.at += 1;
        let span = Span { start, end };
        Ok(Key { span, escaped })
    }

    /// Scans the rest of a string from its first backslash to the closing quote.
    #[inline(never)]
    fn skip_escaped(&mut self) -> Result<(), ScanError> {
        loop {
            match self.peek() {
                Some(b'"') => return Ok(()),
                Some(b'\\') => self.skip_escape()?,
                Some(_) => return self.error("control character in a string"),
                None => return self.error("unfinished string"),
            }
            self.at += long_plain_length(&self.text.as_bytes()[self.at..]);
        }
    }

    fn skip_escape(&mut self) -> Result<(), ScanError> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => self.skip_unicode_escape(),
            _ => self.error("unknown escape"),
        }
    }

    /// Scans `uXXXX`, and the second escape of a surrogate pair.
    #[inline(never)]
    fn skip_unicode_escape(&mut self) -> Result<(), ScanError> {
        match self.code_unit()? {
            0xdc00..=0xdfff => self.error("lone surrogate"),
            0xd800..=0xdbff => {
                if !(self.take(b'\\') && self.peek() == Some(b'u')) {
                    return self.error("lone surrogate");
                }
                match self.code_unit()? {
                    0xdc00..=0xdfff => Ok(()),
                    _ => self.error("lone surrogate"),
                }
            }
            _ => Ok(()),
        }
    }

    fn code_unit(&mut self) -> Result<u16, ScanError> {
        self.at += 1;
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let mut unit = 0;
        for digit in digits.unwrap_or(b"?") {
            match (*digit as char).to_digit(16) {
                Some(value) => unit = unit << 4 | value as u16,
                None => return self.error("`\\u` needs four hexadecimal digits"),
            }
        }
        self.at += 4;
        Ok(unit)
    }

    fn skip_number(&mut self) -> Result<(), ScanError> {
        self.take(b'-');
        if !self.take(b'0') {
            self.skip_digits()?;
        }
        if self.take(b'.') {
            self.skip_digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return self.error("expected a digit");
        }
        Ok(())
    }

    fn skip_word(&mut self, word: &'static str) -> Result<(), ScanError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.error("expected a value");
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Skips whitespace and returns the next byte.
    fn token(&mut self) -> Option<u8> {
        self.skip_whitespace();
        let byte = self.peek();
        self.at += 1;
        byte
    }

    /// Returns an error for the byte that [`Self::token`] returned.
    #[cold]
    fn unexpected<T>(&self, what: &'static str) -> Result<T, ScanError> {
        let at = self.at - 1;
        Err(ScanError { what, at })
    }

    #[cold]
    fn error<T>(&self, what: &'static str) -> Result<T, ScanError> {
        Err(ScanError { what, at: self.at })
    }
}

#[derive(Clone, Copy)]
enum Container {
    Array,
    RawObject,
}

/// The open containers, innermost in the lowest bit.
struct Nesting {
    kinds: u128,
    outer: usize,
    depth: usize,
}

impl Nesting {
    fn inside(outer: usize) -> Self {
        Self {
            kinds: 0,
            outer,
            depth: outer,
        }
    }

    fn is_empty(&self) -> bool {
        self.depth == self.outer
    }

    fn push(&mut self, container: Container, scanner: &Scanner<'_>) -> Result<(), ScanError> {
        // The number of bits is at least this limit.
        const { assert!(MAX_DEPTH <= u128::BITS as usize) };
        if self.depth == MAX_DEPTH {
            return scanner.error("more than 128 levels deep");
        }
        self.depth += 1;
        self.kinds = self.kinds << 1 | u128::from(matches!(container, Container::RawObject));
        Ok(())
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.kinds >>= 1;
    }

    fn top(&self) -> Option<Container> {
        match (self.is_empty(), self.kinds & 1) {
            (true, _) => None,
            (false, 0) => Some(Container::Array),
            (false, _) => Some(Container::RawObject),
        }
    }
}
