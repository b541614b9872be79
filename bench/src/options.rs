//! Command lines of the form `--name value` and `--switch`, which is all the benchmarks need.

use std::str::FromStr;

use crate::Failure;

/// The arguments of a command, taken one by one; a remaining argument is an error.
#[derive(Debug)]
pub struct Options {
    arguments: Vec<String>,
}

impl Options {
    /// Takes the arguments of this process.
    pub fn from_process() -> Options {
        Options::new(std::env::args().skip(1))
    }

    /// Takes the arguments given.
    pub fn new(arguments: impl IntoIterator<Item = impl Into<String>>) -> Options {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Options { arguments }
    }

    /// Takes the first argument, the verb, if it is not an option.
    pub fn verb(&mut self) -> Option<String> {
        let first = self.arguments.first()?;
        (!first.starts_with("--")).then(|| self.arguments.remove(0))
    }

    /// Takes a switch and returns whether it was present.
    pub fn switch(&mut self, name: &str) -> bool {
        let position = self.arguments.iter().position(|argument| argument == name);
        position.map(|at| self.arguments.remove(at)).is_some()
    }

    /// Takes the value that follows `name`.
    pub fn value<T>(&mut self, name: &str) -> Result<Option<T>, Failure>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        let Some(at) = self.arguments.iter().position(|argument| argument == name) else {
            return Ok(None);
        };
        if at + 1 == self.arguments.len() {
            return Err(format!("`{name}` needs a value").into());
        }
        let value = self.arguments.drain(at..at + 2).nth(1).unwrap_or_default();
        match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(format!("`{name} {value}`: {error}").into()),
        }
    }

    /// Returns an error if an argument was not taken.
    pub fn finish(self) -> Result<(), Failure> {
        match self.arguments.first() {
            None => Ok(()),
            Some(argument) => Err(format!("unknown argument `{argument}`, see --help").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_verb_switch_and_value_in_any_order() {
        let mut options = Options::new(["http", "--calls", "20", "--json"]);

        assert_eq!(options.verb().as_deref(), Some("http"));
        assert!(options.switch("--json"));
        assert_eq!(options.value::<u32>("--calls").unwrap(), Some(20));
        assert_eq!(options.value::<u32>("--sessions").unwrap(), None);
        assert!(options.finish().is_ok());
    }

    #[test]
    fn rejects_a_missing_value_a_bad_value_and_a_leftover() {
        assert!(Options::new(["--calls"]).value::<u32>("--calls").is_err());
        assert!(
            Options::new(["--calls", "x"])
                .value::<u32>("--calls")
                .is_err()
        );
        assert!(Options::new(["--color"]).finish().is_err());
    }
}
