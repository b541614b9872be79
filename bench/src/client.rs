//! The common part of every measured client: reads the plan from the command line and reports the cost of the calls.
//!
//! ```text
//! PROGRAM --url URL | --stdio COMMAND   [--era modern|legacy] [--calls N] [--at-once K] [--message BYTES]
//! ```
//!
//! It prints one line, `{"calls":N,"seconds":S,"cpu_seconds":C}`: the time of the calls, without connecting and the handshake.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    Failure,
    message::{self, Era},
    options::Options,
};

/// The calls that a client makes.
#[derive(Debug)]
pub struct Plan {
    /// The server to call.
    pub server: Server,
    /// The era of the calls.
    pub era: Era,
    /// The number of calls in all.
    pub calls: u64,
    /// The number of callers; each waits for its response before it calls again.
    pub at_once: u64,
    /// The message to echo.
    pub message: String,
}

/// The server of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// At a URL.
    Url(String),
    /// A child process on stdio: its program and arguments.
    Child(Vec<String>),
}

impl Plan {
    /// Reads a command line.
    pub fn parse(mut options: Options) -> Result<Plan, Failure> {
        let url = options.value::<String>("--url")?.map(Server::Url);
        let child = options.value::<String>("--stdio")?;
        let child =
            child.map(|command| Server::Child(command.split(' ').map(str::to_owned).collect()));
        let era = match options.value::<String>("--era")?.as_deref() {
            None | Some("modern") => Era::Modern,
            Some("legacy") => Era::Legacy,
            Some(other) => return Err(format!("unknown era `{other}`").into()),
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

/// Measures wall-clock and CPU time from its creation.
#[derive(Debug)]
pub struct Stopwatch {
    started: Instant,
    cpu: Duration,
}

impl Stopwatch {
    /// Starts measuring.
    pub fn start() -> Result<Stopwatch, Failure> {
        Ok(Stopwatch {
            cpu: process_time()?,
            started: Instant::now(),
        })
    }

    /// Returns the line that a client prints: the cost of `calls` calls since then.
    pub fn report(&self, calls: u64) -> Result<String, Failure> {
        let time = self.started.elapsed();
        let cpu = process_time()?.saturating_sub(self.cpu);
        Ok(json!({
            "calls": calls,
            "seconds": time.as_secs_f64(),
            "cpu_seconds": cpu.as_secs_f64(),
        })
        .to_string())
    }
}

/// Returns the CPU time of the threads of this process, in user space and in the kernel.
///
/// Finer than the ticks of the process as a whole, and it works under valgrind, where reading a CPU clock does not.
fn process_time() -> Result<Duration, Failure> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let times = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let ran = times.split(' ').next().unwrap_or_default();
        nanoseconds += ran.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Returns the text of that many bytes that all benchmarks send.
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
    fn report_is_one_json_line() {
        let line = Stopwatch::start().unwrap().report(7).unwrap();

        assert!(line.starts_with(r#"{"calls":7,"#), "{line}");
        assert!(line.contains("\"seconds\":") && line.contains("\"cpu_seconds\":"));
    }
}
