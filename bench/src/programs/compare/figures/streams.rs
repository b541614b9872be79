//! Idle sessions, open streams, and one change that is announced on all of them.

use std::time::Duration;

use turnbuckle_bench::{
    Failure,
    cores::Cores,
    descriptors,
    process::{Memory, ServerProcess},
    sessions,
    streams::{Kind, Streams},
};

use crate::programs::compare::{
    figure::{Figure, Goal, Metric, Sample},
    peer::{Ability, Peer, Role},
};

const SESSIONS: usize = 10_000;
/// The number of those that are opened before anything is measured.
const FIRST: usize = 32;
const STREAMS: usize = 1_000;
const ANNOUNCEMENTS: usize = 20;
/// How long a server may still be busy after the last listener has received a change.
const REST: Duration = Duration::from_millis(5);

/// Returns every figure of this group.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let held = |what, streams| Box::new(HeldState { what, streams }) as Box<dyn Figure>;
    vec![
        held(Quantity::Idle, Of::Sessions),
        held(Quantity::Open, Of::Sessions),
        held(Quantity::Open, Of::Listeners),
        held(Quantity::Announced, Of::Sessions),
        held(Quantity::Announced, Of::Listeners),
    ]
}

/// State that a server holds for many clients at once.
#[derive(Clone, Copy, Debug)]
struct HeldState {
    what: Quantity,
    streams: Of,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    /// Sessions without a stream: the memory of each, and the cost of opening one.
    Idle,
    /// Open streams: the memory of each.
    Open,
    /// Open streams, and a change: the time until the last has it, the cost of each delivery.
    Announced,
}

/// The owner of the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// GET streams of legacy sessions.
    Sessions,
    /// Modern `subscriptions/listen`.
    Listeners,
}

impl Figure for HeldState {
    fn group(&self) -> &'static str {
        "streams"
    }

    fn case(&self) -> String {
        match (self.what, self.streams) {
            (Quantity::Idle, _) => format!("{SESSIONS} idle sessions"),
            (Quantity::Open, Of::Sessions) => format!("{STREAMS} sessions with an open GET stream"),
            (Quantity::Open, Of::Listeners) => format!("{STREAMS} subscriptions/listen"),
            (Quantity::Announced, Of::Sessions) => {
                format!("one tools/list_changed to {STREAMS} GET streams of sessions")
            }
            (Quantity::Announced, Of::Listeners) => {
                format!("one tools/list_changed to {STREAMS} subscriptions/listen")
            }
        }
    }

    fn goal(&self) -> Option<Goal> {
        match (self.what, self.streams) {
            (Quantity::Idle, _) => Some(Goal::at_most(Metric::Bytes, 1024.0)),
            (Quantity::Open, Of::Sessions) => Some(Goal::at_most(Metric::Bytes, 16.0 * 1024.0)),
            (Quantity::Open, Of::Listeners) => None,
            (Quantity::Announced, _) => Some(Goal::times(Metric::Cpu, 1.15)),
        }
    }

    fn needs(&self) -> &'static [Ability] {
        match (self.what, self.streams) {
            (Quantity::Idle, _) => &[Ability::Legacy],
            (_, Of::Sessions) => &[Ability::Legacy, Ability::AnnounceInSessions],
            (_, Of::Listeners) => &[Ability::Modern, Ability::Announce],
        }
    }

    fn rounds(&self) -> usize {
        match self.what {
            Quantity::Announced => 25,
            Quantity::Idle | Quantity::Open => self.rounds_of_peers(),
        }
    }

    fn rounds_of_peers(&self) -> usize {
        3
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        if self.what == Quantity::Idle && peer.role == Role::Limit {
            // It keeps no state, so it does not support sessions.
            return Ok(None);
        }
        served(peer, places, STREAMS, async |server| match self.what {
            Quantity::Idle => idle(server).await,
            Quantity::Open => open(server, self.streams).await,
            Quantity::Announced => delivery_sample(server, self.streams).await,
        })
    }
}

/// Starts a server with room for this many connections, and measures something on it.
pub(crate) fn served(
    peer: &Peer,
    places: Cores,
    connections: usize,
    measure: impl AsyncFnOnce(&ServerProcess) -> Result<Sample, Failure>,
) -> Result<Option<Sample>, Failure> {
    let Some(mut command) = peer.streams() else {
        return Ok(None);
    };
    descriptors::raise(connections)?;
    let server = places.on_the_servers_core(|| ServerProcess::start(&mut command))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let sample = runtime.block_on(measure(&server))?;
    drop(runtime);
    server.terminate()?;
    Ok(Some(sample))
}

async fn idle(server: &ServerProcess) -> Result<Sample, Failure> {
    // Ours has room for 10,000, and some are already open.
    let count = SESSIONS - FIRST;
    let (before, cpu) = (idle_memory(server).await?, server.cpu()?);
    sessions::open(server.address(), server.path(), count).await?;
    let cpu = (server.cpu()? - cpu).as_secs_f64();
    let bytes = bytes_each(before, server.memory()?, count);
    Ok(vec![
        (Metric::Bytes, bytes),
        (Metric::Cpu, cpu * 1e6 / count as f64),
    ])
}

async fn open(server: &ServerProcess, of: Of) -> Result<Sample, Failure> {
    let before = idle_memory(server).await?;
    let streams = of.open(server, STREAMS).await?;
    let after = server.memory()?;
    let bytes = bytes_each(before, after, streams.count());
    Ok(vec![(Metric::Bytes, bytes)])
}

async fn delivery_sample(server: &ServerProcess, of: Of) -> Result<Sample, Failure> {
    idle_memory(server).await?;
    let mut streams = of.open(server, STREAMS).await?;
    let (milliseconds, cpu) = announced(server, &mut streams, ANNOUNCEMENTS).await?;
    Ok(vec![
        (Metric::Milliseconds, milliseconds),
        (Metric::Cpu, cpu),
    ])
}

impl Of {
    /// Opens this many streams.
    pub(crate) async fn open(
        self,
        server: &ServerProcess,
        count: usize,
    ) -> Result<Streams, Failure> {
        let (address, path) = (server.address(), server.path());
        let kind = match self {
            Of::Sessions => Kind::General(sessions::open(address, path, count).await?),
            Of::Listeners => Kind::Listen(count),
        };
        Streams::open(address, path, &kind).await
    }
}

/// Announces some times; returns milliseconds until the last stream has received it and microseconds of the server's CPU
/// time for each delivery, both of the median announcement.
pub(crate) async fn announced(
    server: &ServerProcess,
    streams: &mut Streams,
    times: usize,
) -> Result<(f64, f64), Failure> {
    // Everything that a server creates for the first announcement exists.
    streams.announce().await?;
    let (mut milliseconds, mut costs) = (Vec::new(), Vec::new());
    for _ in 0..times {
        tokio::time::sleep(REST).await;
        let cpu = server.cpu()?;
        milliseconds.push(streams.announce().await?.as_secs_f64() * 1e3);
        tokio::time::sleep(REST).await;
        let cpu = server.cpu()? - cpu;
        costs.push(cpu.as_secs_f64() * 1e6 / streams.count() as f64);
    }
    Ok((median(milliseconds), median(costs)))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Makes a server create everything that it creates once, and returns its memory after that.
async fn idle_memory(server: &ServerProcess) -> Result<Memory, Failure> {
    // A peer without sessions returns an error where they are needed.
    let _ = sessions::open(server.address(), server.path(), FIRST).await;
    server.memory()
}

fn bytes_each(before: Memory, after: Memory, count: usize) -> f64 {
    after.now.saturating_sub(before.now) as f64 / count as f64
}
