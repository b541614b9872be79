//! Requests over HTTP: the rate, the cost of each, the latency.

use std::time::{Duration, Instant};

use turnbuckle_bench::{
    Failure,
    connection::Connection,
    cores::Cores,
    message::{self, Era},
    process::ServerProcess,
};

use crate::programs::compare::{
    drive::{self, Lane},
    figure::{Figure, Goal, Metric, Sample},
    peer::{Ability, Peer},
};

const WARM_UP: Duration = Duration::from_millis(200);
const TIME: Duration = Duration::from_millis(800);

/// Returns every figure of this group.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let echo = |era, bytes, connections| Call {
        era,
        request: Request::Echo(bytes),
        connections,
    };
    let mut figures = Vec::new();
    for connections in [32, 1, 256] {
        figures.push(echo(Era::Modern, 50, connections));
        figures.push(echo(Era::Legacy, 50, connections));
    }
    for connections in [32, 1, 256] {
        figures.push(echo(Era::Modern, 65_536, connections));
    }
    figures.push(echo(Era::Legacy, 65_536, 32));
    for request in [Request::Add, Request::List, Request::Steps] {
        figures.extend([Era::Modern, Era::Legacy].map(|era| Call {
            era,
            request,
            connections: 32,
        }));
    }
    let boxed = |figure| Box::new(figure) as Box<dyn Figure>;
    figures.into_iter().map(boxed).collect()
}

/// The same request over some connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) era: Era,
    pub(super) request: Request,
    pub(super) connections: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// `echo` with a message of this many bytes.
    Echo(usize),
    /// `add`, which has a structured result.
    Add,
    /// `tools/list` of a hundred tools.
    List,
    /// A call that reports progress three times.
    Steps,
}

impl Figure for Call {
    fn group(&self) -> &'static str {
        "HTTP"
    }

    fn case(&self) -> String {
        let era = match self.era {
            Era::Modern => "modern",
            Era::Legacy => "session",
        };
        let request = match self.request {
            Request::Echo(bytes) if bytes < 1024 => format!("echo {bytes} B"),
            Request::Echo(bytes) => format!("echo {} KiB", bytes / 1024),
            Request::Add => "add".to_owned(),
            Request::List => "tools/list of 100".to_owned(),
            Request::Steps => "three steps of progress".to_owned(),
        };
        let connections = match self.connections {
            1 => "1 connection".to_owned(),
            many => format!("{many} connections"),
        };
        format!("{era} {request}, {connections}")
    }

    fn goal(&self) -> Option<Goal> {
        match (self.request, self.connections) {
            (Request::Echo(50), 32 | 256) => Some(Goal::share(Metric::PerSecond, 0.8)),
            (Request::List, _) => Some(Goal::times(Metric::Cpu, 1.2)),
            _ => None,
        }
    }

    fn needs(&self) -> &'static [Ability] {
        match (self.era, self.request) {
            (Era::Modern, Request::List) => &[Ability::Modern, Ability::Tools],
            (Era::Legacy, Request::List) => &[Ability::Legacy, Ability::Tools],
            (Era::Modern, Request::Steps) => &[Ability::Modern, Ability::Steps],
            (Era::Legacy, Request::Steps) => &[Ability::Legacy, Ability::Steps],
            (Era::Modern, _) => &[Ability::Modern],
            (Era::Legacy, _) => &[Ability::Legacy],
        }
    }

    fn rounds(&self) -> usize {
        match self.goal() {
            Some(_) => 15,
            None => self.rounds_of_peers(),
        }
    }

    fn rounds_of_peers(&self) -> usize {
        3
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let Some(mut command) = peer.http(self.request.switches()) else {
            return Ok(None);
        };
        let server = places.on_the_servers_core(|| ServerProcess::start(&mut command))?;
        let sample = self.measure(&server)?;
        server.terminate()?;
        Ok(Some(sample))
    }
}

impl Call {
    /// Drives a running server and measures it.
    pub(super) fn measure(&self, server: &ServerProcess) -> Result<Sample, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(self.drive(server))
    }

    async fn drive(&self, server: &ServerProcess) -> Result<Sample, Failure> {
        let mut lanes = Vec::new();
        for id in 0..self.connections {
            lanes.push(self.lane(server, id as u64).await?);
        }
        let (lanes, _) = drive::drive(lanes, WARM_UP).await?;
        let (cpu, began) = (server.cpu()?, Instant::now());
        let (_, driven) = drive::drive(lanes, TIME).await?;
        let (seconds, cpu) = (
            began.elapsed().as_secs_f64(),
            server.cpu()?.saturating_sub(cpu),
        );
        let answered = driven.answered as f64;
        Ok(vec![
            (Metric::PerSecond, answered / seconds),
            (Metric::Cpu, cpu.as_secs_f64() * 1e6 / answered),
            (Metric::P50, driven.latency(0.5)),
            (Metric::P99, driven.latency(0.99)),
        ])
    }

    /// Opens a connection, with its own session if the era has them.
    async fn lane(&self, server: &ServerProcess, id: u64) -> Result<Lane, Failure> {
        let session = match self.era {
            Era::Modern => None,
            Era::Legacy => open_session(server).await?,
        };
        let session = session.as_deref();
        let (headers, body) = match self.request {
            Request::List => (
                message::list_headers(self.era, session),
                message::list(self.era, id),
            ),
            Request::Steps => (
                message::call_headers(self.era, "steps", session),
                message::call_with_progress(self.era, id, "steps", "{}"),
            ),
            Request::Echo(bytes) => {
                let arguments = format!(r#"{{"message":"{}"}}"#, message::text(bytes));
                (
                    message::call_headers(self.era, "echo", session),
                    message::call(self.era, id, "echo", &arguments),
                )
            }
            Request::Add => (
                message::call_headers(self.era, "add", session),
                message::call(self.era, id, "add", r#"{"a":1,"b":2}"#),
            ),
        };
        let host = server.address().to_string();
        let request = message::post_to(server.path(), &host, &headers, &body);
        Lane::open(server.address(), request, |response| {
            self.request.accepts_response(response)
        })
        .await
    }
}

impl Request {
    fn switches(self) -> &'static [&'static str] {
        match self {
            Request::Echo(_) | Request::Add => &[],
            Request::List => &["--tools", "100"],
            Request::Steps => &["--more"],
        }
    }

    fn accepts_response(self, response: &str) -> bool {
        let response: serde_json::Value = serde_json::from_str(response).unwrap_or_default();
        let result = &response["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        match self {
            Request::Echo(bytes) => text.len() == bytes,
            Request::Add => result["structuredContent"]["sum"].as_f64() == Some(3.0),
            Request::List => result["tools"]
                .as_array()
                .is_some_and(|all| all.len() == 100),
            Request::Steps => text == "done",
        }
    }
}

/// Opens a session on a separate connection; a server may omit the session id.
async fn open_session(server: &ServerProcess) -> Result<Option<String>, Failure> {
    let connection = Connection::open(server.address()).await?;
    let mut connection = connection.at(server.path());
    let first = connection
        .exchange(&Vec::new(), message::INITIALIZE)
        .await?;
    let session = first.header("mcp-session-id").map(str::to_owned);
    let headers = message::session_headers(session.as_deref());
    connection.exchange(&headers, message::INITIALIZED).await?;
    Ok(session)
}
