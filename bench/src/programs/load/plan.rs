//! The options of one run.

use std::{path::PathBuf, process::Command, time::Duration};

use turnbuckle_bench::{Failure, descriptors, options::Options};

use crate::programs;

pub(crate) const USAGE: &str = "\
usage: turnbuckle-bench load [--server PATH] [--arguments WORDS] [--calls N] [--sessions N]
            [--blocking N] [--hold SECONDS] [--memory MIB] [--http2 N] [--json]

  --server PATH      the server to start (`turnbuckle-bench slow-server`)
  --arguments WORDS  its arguments (`--listen 127.0.0.1:0`)
  --calls N          calls held open at once (20000)
  --sessions N       idle sessions (10000)
  --blocking N       calls that block a thread, in addition to the slow ones (16)
  --hold SECONDS     how long after the first call the held ones end (30)
  --memory MIB       the most memory the server may take (1024)
  --http2 N          how many of the calls share HTTP/2 connections (those for which
                     the process lacks a descriptor)";

#[derive(Debug)]
pub(crate) struct Plan {
    /// `None`: the slow server of this binary.
    server: Option<PathBuf>,
    arguments: Vec<String>,
    pub(crate) calls: usize,
    pub(crate) sessions: usize,
    pub(crate) blocking: usize,
    pub(crate) hold: Duration,
    /// The highest allowed memory of the server, in bytes.
    pub(crate) memory: u64,
    /// The number of calls that share HTTP/2 connections.
    pub(crate) multiplexed: usize,
    pub(crate) json: bool,
}

impl Plan {
    /// Reads the options and raises the descriptor limit, which the server inherits.
    pub(crate) fn from_options(mut options: Options) -> Result<Plan, Failure> {
        let calls = options.value("--calls")?.unwrap_or(20_000);
        let fitting = descriptors::raise(calls)?;
        let server = options.value("--server")?;
        let arguments = options.value::<String>("--arguments")?;
        let arguments = arguments.unwrap_or_else(|| "--listen 127.0.0.1:0".to_owned());
        let plan = Plan {
            server,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            calls,
            sessions: options.value("--sessions")?.unwrap_or(10_000),
            blocking: options.value("--blocking")?.unwrap_or(16),
            hold: Duration::from_secs(options.value("--hold")?.unwrap_or(30)),
            memory: options.value("--memory")?.unwrap_or(1024) << 20,
            multiplexed: options
                .value("--http2")?
                .unwrap_or(calls.saturating_sub(fitting))
                .min(calls),
            json: options.switch("--json"),
        };
        options.finish()?;
        Ok(plan)
    }

    pub(crate) fn command(&self) -> Result<Command, Failure> {
        let mut command = match &self.server {
            Some(path) => Command::new(path),
            None => programs::command("slow-server")?,
        };
        command.args(&self.arguments);
        Ok(command)
    }
}
