//! From a header to its challenges: `scheme name=value, name="value", scheme …`.
//!
//! A comma stands between parameters and between challenges alike, so that what follows one is known only by the `=` behind it.

use super::{Challenge, InvalidChallenge};

pub(super) fn challenges(header: &str) -> Result<Vec<Challenge>, InvalidChallenge> {
    if header.len() > Challenge::MOST_BYTES {
        return Err(InvalidChallenge::TooLong);
    }
    let mut reader = Reader {
        whole: header.len(),
        rest: header,
    };
    let mut challenges: Vec<Challenge> = Vec::new();
    loop {
        reader.skip(&[' ', '\t', ',']);
        if reader.rest.is_empty() {
            return Ok(challenges);
        }
        let word = reader.token()?;
        match (reader.value()?, challenges.last_mut()) {
            (Some(value), Some(challenge)) => {
                challenge.parameters.push((word.to_owned(), value));
            }
            (Some(_), None) => return Err(reader.unreadable()),
            (None, _) => {
                reader.skip_credentials();
                challenges.push(Challenge::new(word));
            }
        }
    }
}

struct Reader<'a> {
    whole: usize,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self, letters: &[char]) {
        self.rest = self.rest.trim_start_matches(letters);
    }

    /// Takes what a predicate likes, which may be nothing.
    fn take(&mut self, is_wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|letter| !is_wanted(letter));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn token(&mut self) -> Result<&'a str, InvalidChallenge> {
        match self.take(is_token) {
            "" => Err(self.unreadable()),
            token => Ok(token),
        }
    }

    /// Takes `=` and a value; `None` if there is no `=`, and then nothing is taken.
    fn value(&mut self) -> Result<Option<String>, InvalidChallenge> {
        let Some(rest) = self.rest.trim_start_matches([' ', '\t']).strip_prefix('=') else {
            return Ok(None);
        };
        self.rest = rest;
        self.skip(&[' ', '\t']);
        if let Some(rest) = self.rest.strip_prefix('"') {
            self.rest = rest;
            return self.quoted().map(Some);
        }
        match self.take(|letter| letter.is_ascii_graphic() && !matches!(letter, ',' | '"')) {
            "" => Err(self.unreadable()),
            value => Ok(Some(value.to_owned())),
        }
    }

    /// Takes the rest of a quoted string and its closing quote.
    fn quoted(&mut self) -> Result<String, InvalidChallenge> {
        let mut value = String::new();
        let mut letters = self.rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(value);
                }
                '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
                _ => value.push(letter),
            }
        }
        // A quote that nothing closes.
        Err(self.unreadable())
    }

    /// Skips what some schemes have in place of parameters, such as `Negotiate YII=`.
    fn skip_credentials(&mut self) {
        let before = self.rest;
        self.skip(&[' ', '\t']);
        self.take(|letter| letter.is_ascii_alphanumeric() || "-._~+/".contains(letter));
        self.take(|letter| letter == '=');
        self.skip(&[' ', '\t']);
        if !self.rest.is_empty() && !self.rest.starts_with(',') {
            // They were the first parameter, or the next scheme.
            self.rest = before;
        }
    }

    fn unreadable(&self) -> InvalidChallenge {
        let at = self.whole - self.rest.len();
        InvalidChallenge::Syntax { at }
    }
}

fn is_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter)
}
