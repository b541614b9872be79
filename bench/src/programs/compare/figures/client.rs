//! The cost of a call at the client: sequential and concurrent, in both eras, over HTTP and on stdio.
//!
//! Here the client is measured. All clients call the same server, the limit.

use std::process::{Command, Output};

use serde::Deserialize;
use turnbuckle_bench::{
    Failure, cores::Cores, goals::CLIENT_TIMES, message::Era, process::ServerProcess,
};

use crate::programs::{
    self,
    compare::{
        figure::{Figure, Goal, Metric, Sample},
        peer::{Ability, Peer},
    },
};

/// The approximate duration of a round, as a number of calls of the limit.
const SEQUENTIAL: u64 = 20_000;
const CONCURRENT_CALLS: u64 = 100_000;

pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let mut figures: Vec<Box<dyn Figure>> = Vec::new();
    for server in [Server::Http, Server::Stdio] {
        for era in [Era::Modern, Era::Legacy] {
            for at_once in [1, 64] {
                figures.push(Box::new(Calls {
                    server,
                    era,
                    at_once,
                }));
            }
        }
    }
    figures
}

/// Calls of `echo` with 50 bytes.
struct Calls {
    server: Server,
    era: Era,
    at_once: u64,
}

/// The server that is called.
#[derive(Clone, Copy)]
enum Server {
    Http,
    Stdio,
}

impl Figure for Calls {
    fn group(&self) -> &'static str {
        "client"
    }

    fn case(&self) -> String {
        let server = match self.server {
            Server::Http => "HTTP",
            Server::Stdio => "stdio",
        };
        let at_once = match self.at_once {
            1 => "one after another".to_owned(),
            many => format!("{many} at once"),
        };
        format!("{server} {} 50 B, {at_once}", era(self.era))
    }

    fn goal(&self) -> Option<Goal> {
        match self.server {
            Server::Http => Some(Goal::times(Metric::Cpu, CLIENT_TIMES)),
            // A blocking client blocks its thread, so nothing else can run: it is shown and is not the target.
            Server::Stdio => None,
        }
    }

    fn needs(&self) -> &'static [Ability] {
        match self.era {
            Era::Modern => &[Ability::Modern],
            Era::Legacy => &[Ability::Legacy],
        }
    }

    fn rounds(&self) -> usize {
        7
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let mut bare = programs::command("bare")?;
        match self.server {
            Server::Http => {
                bare.args(["http", "--listen", "127.0.0.1:0"]);
                let server = places.on_the_servers_core(|| ServerProcess::start(&mut bare))?;
                let url = format!("http://{}{}", server.address(), server.path());
                let sample = self.called(peer, &["--url", &url])?;
                server.terminate()?;
                Ok(sample)
            }
            // The child runs on the core of its client; only the client's own time counts.
            Server::Stdio => {
                let command = format!("{} bare stdio", bare.get_program().display());
                self.called(peer, &["--stdio", &command])
            }
        }
    }
}

impl Calls {
    fn called(&self, peer: &Peer, server: &[&str]) -> Result<Option<Sample>, Failure> {
        let Some(mut command) = peer.client(server) else {
            return Ok(None);
        };
        let calls = match self.at_once {
            1 => SEQUENTIAL,
            _ => CONCURRENT_CALLS,
        };
        let (calls, at_once) = (calls.to_string(), self.at_once.to_string());
        command.args(["--era", era(self.era), "--message", "50"]);
        command.args(["--calls", &calls, "--at-once", &at_once]);
        let client_report = client_report(&mut command)?;
        let calls = client_report.calls as f64;
        Ok(Some(vec![
            (Metric::PerSecond, calls / client_report.seconds),
            (Metric::Cpu, client_report.cpu_seconds * 1e6 / calls),
        ]))
    }
}

/// The output of a client.
#[derive(Deserialize)]
struct ClientReport {
    calls: u64,
    seconds: f64,
    cpu_seconds: f64,
}

fn client_report(command: &mut Command) -> Result<ClientReport, Failure> {
    let Output { status, stdout, .. } = command.stderr(std::process::Stdio::inherit()).output()?;
    if status.success() {
        Ok(serde_json::from_slice(&stdout)?)
    } else {
        Err(format!("{command:?} ended with {status}").into())
    }
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Modern => "modern",
        Era::Legacy => "legacy",
    }
}
