//! Scripts that Redis runs as one step.

use std::sync::OnceLock;

use redis::Cmd;

/// A Lua script. Redis keeps it after its first run, so that later runs send only its hash.
pub(crate) struct Script {
    code: &'static str,
    hash: OnceLock<String>,
}

/// An argument of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument<'a> {
    Bytes(&'a [u8]),
    Number(i64),
}

impl Script {
    pub(crate) const fn new(code: &'static str) -> Self {
        Self {
            code,
            hash: OnceLock::new(),
        }
    }

    pub(crate) fn code(&self) -> &str {
        self.code
    }

    pub(crate) fn hash(&self) -> &str {
        self.hash
            .get_or_init(|| redis::Script::new(self.code).get_hash().to_owned())
    }

    pub(crate) fn command(
        &self,
        name: &str,
        script: &str,
        keys: &[&str],
        arguments: &[Argument<'_>],
    ) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(keys.len());
        for key in keys {
            command.arg(*key);
        }
        for argument in arguments {
            match argument {
                Argument::Bytes(bytes) => command.arg(*bytes),
                Argument::Number(number) => command.arg(*number),
            };
        }
        command
    }
}

impl<'a> From<&'a str> for Argument<'a> {
    fn from(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a String> for Argument<'a> {
    fn from(text: &'a String) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Argument<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Argument<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<usize> for Argument<'_> {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u64> for Argument<'_> {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}
