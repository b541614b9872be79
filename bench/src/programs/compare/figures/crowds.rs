//! The cost of a call with many open sessions, and of a delivery with many listeners.
//!
//! Only the limit and ours: the cost of a peer is in the tables of streams.

use turnbuckle_bench::{Failure, cores::Cores, process::ServerProcess, sessions};

use super::streams::{Of, announced, served};
use crate::programs::compare::{
    figure::{Figure, Metric, Sample},
    peer::{Ability, Peer, Role},
};

const CALLS: usize = 20_000;

/// Returns every figure of this group.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let calls = [1, 100, 10_000].map(|sessions| Crowd {
        size: sessions,
        of: None,
    });
    let deliveries = [1, 10, 100, 1_000, 10_000];
    let streams = [Of::Sessions, Of::Listeners];
    let deliveries = streams
        .into_iter()
        .flat_map(|of| deliveries.map(|size| Crowd { size, of: Some(of) }));
    let boxed = |crowd| Box::new(crowd) as Box<dyn Figure>;
    calls.into_iter().chain(deliveries).map(boxed).collect()
}

#[derive(Clone, Copy, Debug)]
struct Crowd {
    size: usize,
    /// The streams that receive a change; `None`: calls are made in sessions.
    of: Option<Of>,
}

impl Figure for Crowd {
    fn group(&self) -> &'static str {
        "growth"
    }

    fn case(&self) -> String {
        let size = self.size;
        match self.of {
            None => format!("a call in one of {size} sessions"),
            Some(Of::Sessions) => format!("a delivery to one of {size} GET streams"),
            Some(Of::Listeners) => format!("a delivery to one of {size} listeners"),
        }
    }

    fn needs(&self) -> &'static [Ability] {
        match self.of {
            None | Some(Of::Sessions) => &[Ability::Legacy],
            Some(Of::Listeners) => &[Ability::Modern],
        }
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        if peer.role == Role::Peer {
            return Ok(None);
        }
        served(peer, places, self.size, async |server| {
            let cpu = match self.of {
                None => call(server, self.size).await?,
                Some(of) => {
                    let mut streams = of.open(server, self.size).await?;
                    announced(server, &mut streams, 10).await?.1
                }
            };
            Ok(vec![(Metric::Cpu, cpu)])
        })
    }
}

/// Returns the cost of a call with this many open sessions, all of which call in turn.
async fn call(server: &ServerProcess, size: usize) -> Result<f64, Failure> {
    let sessions = sessions::open(server.address(), server.path(), size).await?;
    sessions::call(server.address(), &sessions, CALLS / 10).await?;
    let cpu = server.cpu()?;
    sessions::call(server.address(), &sessions, CALLS).await?;
    let cpu = server.cpu()? - cpu;
    Ok(cpu.as_secs_f64() * 1e6 / CALLS as f64)
}
