//! Sessions that rest, streams that stay open, and one change that is told on all of them.

use std::time::Duration;

use turnbuckle_bench::{
    Failure, descriptors,
    place::Places,
    process::{Memory, ServerProcess},
    sessions,
    streams::{Kind, Streams},
};

use crate::{
    figure::{Figure, Goal, Metric, Sample},
    peer::{Ability, Peer, Role},
};

const SESSIONS: usize = 10_000;
/// Of them, those that are opened before anything is measured.
const FIRST: usize = 32;
const STREAMS: usize = 1_000;
const ANNOUNCEMENTS: usize = 20;
/// How long a server may still be busy after the last listener has been told.
const REST: Duration = Duration::from_millis(5);

/// Returns every figure of this group.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let held = |what, streams| Box::new(Held { what, streams }) as Box<dyn Figure>;
    vec![
        held(What::Idle, Of::Sessions),
        held(What::Open, Of::Sessions),
        held(What::Open, Of::Listeners),
        held(What::Told, Of::Sessions),
        held(What::Told, Of::Listeners),
    ]
}

/// Something that a server holds for many clients at once.
#[derive(Clone, Copy, Debug)]
struct Held {
    what: What,
    streams: Of,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Sessions without a stream: what each holds, and what it costs to open one.
    Idle,
    /// Open streams: what each holds.
    Open,
    /// Open streams, and a change: how long until the last has it, what each delivery costs.
    Told,
}

/// Whose streams they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// GET streams of legacy sessions.
    Sessions,
    /// Modern `subscriptions/listen`.
    Listeners,
}

impl Figure for Held {
    fn group(&self) -> &'static str {
        "streams"
    }

    fn case(&self) -> String {
        match (self.what, self.streams) {
            (What::Idle, _) => format!("{SESSIONS} idle sessions"),
            (What::Open, Of::Sessions) => format!("{STREAMS} sessions with an open GET stream"),
            (What::Open, Of::Listeners) => format!("{STREAMS} subscriptions/listen"),
            (What::Told, Of::Sessions) => {
                format!("one tools/list_changed to {STREAMS} GET streams of sessions")
            }
            (What::Told, Of::Listeners) => {
                format!("one tools/list_changed to {STREAMS} subscriptions/listen")
            }
        }
    }

    fn goal(&self) -> Option<Goal> {
        match (self.what, self.streams) {
            (What::Idle, _) => Some(Goal::at_most(Metric::Bytes, 1024.0)),
            (What::Open, Of::Sessions) => Some(Goal::at_most(Metric::Bytes, 16.0 * 1024.0)),
            (What::Open, Of::Listeners) => None,
            (What::Told, _) => Some(Goal::times(Metric::Cpu, 1.15)),
        }
    }

    fn needs(&self) -> &'static [Ability] {
        match (self.what, self.streams) {
            (What::Idle, _) => &[Ability::Legacy],
            (_, Of::Sessions) => &[Ability::Legacy, Ability::AnnounceInSessions],
            (_, Of::Listeners) => &[Ability::Modern, Ability::Announce],
        }
    }

    fn rounds(&self) -> usize {
        match self.what {
            What::Told => 25,
            What::Idle | What::Open => self.rounds_of_peers(),
        }
    }

    fn rounds_of_peers(&self) -> usize {
        3
    }

    fn round(&self, peer: &Peer, places: Places) -> Result<Option<Sample>, Failure> {
        if self.what == What::Idle && peer.role == Role::Limit {
            // It remembers nothing, so it has no sessions.
            return Ok(None);
        }
        served(peer, places, STREAMS, async |server| match self.what {
            What::Idle => idle(server).await,
            What::Open => open(server, self.streams).await,
            What::Told => told(server, self.streams).await,
        })
    }
}

/// Starts a server with room for so many connections, and measures something on it.
pub(crate) fn served(
    peer: &Peer,
    places: Places,
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
    // Ours has room for 10,000, and some are there already.
    let count = SESSIONS - FIRST;
    let (before, cpu) = (settled(server).await?, server.cpu()?);
    sessions::open(server.address(), server.path(), count).await?;
    let cpu = (server.cpu()? - cpu).as_secs_f64();
    let bytes = bytes_each(before, server.memory()?, count);
    Ok(vec![
        (Metric::Bytes, bytes),
        (Metric::Cpu, cpu * 1e6 / count as f64),
    ])
}

async fn open(server: &ServerProcess, of: Of) -> Result<Sample, Failure> {
    let before = settled(server).await?;
    let streams = of.open(server, STREAMS).await?;
    let after = server.memory()?;
    let bytes = bytes_each(before, after, streams.count());
    Ok(vec![(Metric::Bytes, bytes)])
}

async fn told(server: &ServerProcess, of: Of) -> Result<Sample, Failure> {
    settled(server).await?;
    let mut streams = of.open(server, STREAMS).await?;
    let (milliseconds, cpu) = announced(server, &mut streams, ANNOUNCEMENTS).await?;
    Ok(vec![
        (Metric::Milliseconds, milliseconds),
        (Metric::Cpu, cpu),
    ])
}

impl Of {
    /// Opens so many streams.
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

/// Announces some times; returns milliseconds until the last has been told and microseconds of the server's processor
/// for each delivery, both of the median announcement.
pub(crate) async fn announced(
    server: &ServerProcess,
    streams: &mut Streams,
    times: usize,
) -> Result<(f64, f64), Failure> {
    // Whatever a server makes for the first announcement is made.
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

/// Has a server make what it makes once, and returns its memory after that.
async fn settled(server: &ServerProcess) -> Result<Memory, Failure> {
    // A peer without sessions says so where they are needed.
    let _ = sessions::open(server.address(), server.path(), FIRST).await;
    server.memory()
}

fn bytes_each(before: Memory, after: Memory, count: usize) -> f64 {
    after.now.saturating_sub(before.now) as f64 / count as f64
}
