//! What every client that is measured does: take its plan from the command line, call, and say what that cost.
//!
//! ```text
//! PROGRAM --url URL | --stdio COMMAND   [--era modern|legacy] [--calls N] [--at-once K] [--message BYTES]
//! ```
//!
//! It prints one line, `{"calls":N,"seconds":S,"cpu_seconds":C}`: what the calls took, without connecting and the handshake.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    Failure,
    message::{self, Era},
    options::Options,
};

/// What a client is asked to do.
#[derive(Debug)]
pub struct Plan {
    /// Whom to call.
    pub server: Server,
    /// In which of the two ways.
    pub era: Era,
    /// How often, in all.
    pub calls: u64,
    /// How many callers there are; each waits for its answer before it calls again.
    pub at_once: u64,
    /// What is to be echoed.
    pub message: String,
}

/// Where the server of a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// At a URL.
    Url(String),
    /// A child process on stdio: its program and arguments.
    Child(Vec<String>),
}

impl Plan {
    /// Reads the command line of this process.
    pub fn from_process() -> Result<Plan, Failure> {
        Plan::parse(Options::from_process())
    }

    /// Reads a command line.
    pub fn parse(mut options: Options) -> Result<Plan, Failure> {
        let url = options.value::<String>("--url")?.map(Server::Url);
        let child = options.value::<String>("--stdio")?;
        let child =
            child.map(|command| Server::Child(command.split(' ').map(str::to_owned).collect()));
        let era = match options.value::<String>("--era")?.as_deref() {
            None | Some("modern") => Era::Modern,
            Some("legacy") => Era::Legacy,
            Some(other) => return Err(format!("there is no era `{other}`").into()),
        };
        let calls = options.value("--calls")?.unwrap_or(1_000);
        let at_once = options.value("--at-once")?.unwrap_or(1);
        let message = decoded(options.value("--message")?.unwrap_or(50))?;
        options.finish()?;
        Ok(Plan {
            server: url.or(child).ok_or("`--url` or `--stdio` is needed")?,
            era,
            calls,
            at_once,
            message,
        })
    }

    /// Returns how many calls each caller makes; together they make all of them.
    pub fn shares(&self) -> impl Iterator<Item = u64> {
        let (calls, callers) = (self.calls, self.at_once);
        (0..callers).map(move |caller| calls / callers + u64::from(caller < calls % callers))
    }
}

/// Measures from when it is made.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    cpu: Duration,
}

impl Stopwatch {
    /// Begins to measure.
    pub fn start() -> Result<Stopwatch, Failure> {
        Ok(Stopwatch {
            cpu: process_time()?,
            begun: Instant::now(),
        })
    }

    /// Says what `calls` calls took since then, in the line that a client prints.
    pub fn report(&self, calls: u64) -> Result<String, Failure> {
        let time = self.begun.elapsed();
        let cpu = process_time()?.saturating_sub(self.cpu);
        Ok(json!({
            "calls": calls,
            "seconds": time.as_secs_f64(),
            "cpu_seconds": cpu.as_secs_f64(),
        })
        .to_string())
    }
}

/// Returns how long the threads of this process have run, in their own code and in the kernel.
///
/// Finer than the ticks of the process as a whole, and it works under valgrind, where asking for a clock does not.
fn process_time() -> Result<Duration, Failure> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let times = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let ran = times.split(' ').next().unwrap_or_default();
        nanoseconds += ran.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Returns the text of that many bytes that all benches send.
fn decoded(size: usize) -> Result<String, Failure> {
    Ok(serde_json::from_str(&format!(
        "\"{}\"",
        message::text(size)
    ))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, Failure> {
        Plan::parse(Options::new(line.split('|')))
    }

    #[test]
    fn a_plan_is_read_from_a_command_line() {
        let http = plan("--url|http://a/mcp|--era|legacy|--calls|10|--at-once|4").unwrap();
        let stdio = plan("--stdio|./bare stdio|--message|7").unwrap();

        assert_eq!(http.server, Server::Url("http://a/mcp".to_owned()));
        assert_eq!((http.era, http.message.len()), (Era::Legacy, 50));
        assert_eq!(http.shares().collect::<Vec<_>>(), [3, 3, 2, 2]);
        let command = ["./bare", "stdio"].map(str::to_owned);
        assert_eq!(stdio.server, Server::Child(command.to_vec()));
        assert_eq!((stdio.era, stdio.message.len()), (Era::Modern, 7));
        assert!(plan("--era|modern").is_err());
        assert!(plan("--url|http://a/mcp|--era|future").is_err());
    }

    #[test]
    fn time_that_passes_is_told_in_one_line() {
        let said = Stopwatch::start().unwrap().report(7).unwrap();

        assert!(said.starts_with(r#"{"calls":7,"#), "{said}");
        assert!(said.contains("\"seconds\":") && said.contains("\"cpu_seconds\":"));
    }
}
