//! Calls through a gateway: what the gateway itself uses of the processor, not the server behind it.

use turnbuckle_bench::{
    Failure, cores::Cores, goals::GATEWAY_TIMES, message::Era, process::ServerProcess,
    work::Transport,
};

use super::http::{Call, Request};
use crate::programs::{
    self,
    compare::{
        figure::{Figure, Goal, Metric, Sample},
        peer::{Ability, Peer},
    },
};

/// Returns every figure of this group.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let mut figures: Vec<Box<dyn Figure>> = Vec::new();
    for behind in [Transport::Stdio, Transport::Http] {
        for era in [Era::Legacy, Era::Modern] {
            for connections in [1, 32] {
                let request = Request::Echo(50);
                let call = Call {
                    era,
                    request,
                    connections,
                };
                figures.push(Box::new(Relayed { call, behind }));
            }
        }
    }
    figures
}

/// A call of `echo` over some connections, through a gateway.
#[derive(Clone, Copy, Debug)]
struct Relayed {
    call: Call,
    /// The transport of the server behind, which is the bare one.
    behind: Transport,
}

impl Figure for Relayed {
    fn group(&self) -> &'static str {
        "gateway"
    }

    fn case(&self) -> String {
        let behind = match self.behind {
            Transport::Stdio => "to a child process",
            Transport::Http => "to a server over HTTP",
        };
        format!("{behind}: {}", self.call.case())
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal::times(Metric::Cpu, GATEWAY_TIMES))
    }

    fn needs(&self) -> &'static [Ability] {
        self.call.needs()
    }

    fn rounds(&self) -> usize {
        5
    }

    fn rounds_of_peers(&self) -> usize {
        3
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let server = match self.behind {
            // The gateway starts it.
            Transport::Stdio => None,
            Transport::Http => {
                let mut command = programs::command("bare")?;
                command.args(["http", "--listen", "127.0.0.1:0"]);
                Some(ServerProcess::start(&mut command)?)
            }
        };
        let upstream = server.as_ref().map(ServerProcess::address);
        let Some(mut command) = peer.gateway(upstream, self.call.era) else {
            return Ok(None);
        };
        let gateway = places.on_the_servers_core(|| ServerProcess::start(&mut command))?;
        let sample = self.call.measure(&gateway)?;
        gateway.terminate()?;
        server.map(ServerProcess::terminate).transpose()?;
        Ok(Some(sample))
    }
}
