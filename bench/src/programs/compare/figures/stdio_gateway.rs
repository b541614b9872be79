//! Gateways on stdio in front of the bare server over HTTP: the cost of a call, and the time until the first response.
//!
//! Ours is `turnbuckle bridge --stdio URL`, the program that users start. No limit is measured.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use turnbuckle_bench::{Failure, cores::Cores, message::Era, process::ServerProcess};

use crate::programs::{
    self,
    compare::{
        figure::{Figure, Goal, Metric, Sample},
        peer::{Ability, Peer, Role},
        pipe::{Calls, Pipe},
    },
};

const WARM_UP: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(2);
const BYTES: usize = 50;
/// The bare server responds at once, so this is the target of the gateway alone.
const FIRST_ANSWER_MILLISECONDS: f64 = 20.0;

/// Returns every figure of this group.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let call = |era| -> Box<dyn Figure> { Box::new(Call { era }) };
    vec![call(Era::Legacy), call(Era::Modern), Box::new(FirstAnswer)]
}

/// Calls of `echo`, one after the other.
struct Call {
    era: Era,
}

impl Figure for Call {
    fn group(&self) -> &'static str {
        "stdio gateway"
    }

    fn case(&self) -> String {
        let era = match self.era {
            Era::Modern => "modern",
            Era::Legacy => "session",
        };
        format!("to a server over HTTP: {era} echo {BYTES} B, one after the other")
    }

    fn needs(&self) -> &'static [Ability] {
        match self.era {
            Era::Modern => &[Ability::Modern],
            Era::Legacy => &[Ability::Legacy],
        }
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let server = bare_server()?;
        let Some(mut command) = command(peer, &server)? else {
            return Ok(None);
        };
        let mut pipe = Pipe::open(&mut command, places)?;
        pipe.handshake(self.era)?;
        let mut calls = Calls::new(self.era, BYTES);
        calls.run(&mut pipe, 1, WARM_UP)?;
        let (cpu, began) = (pipe.cpu()?, Instant::now());
        let driven = calls.run(&mut pipe, 1, TIME)?;
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), pipe.cpu()? - cpu);
        server.terminate()?;
        let answered = driven.answered as f64;
        Ok(Some(vec![
            (Metric::PerSecond, answered / seconds),
            (Metric::Cpu, cpu.as_secs_f64() * 1e6 / answered),
            (Metric::P50, driven.latency(0.5)),
            (Metric::P99, driven.latency(0.99)),
        ]))
    }
}

/// The time from starting a gateway until it has responded to `initialize`.
struct FirstAnswer;

impl Figure for FirstAnswer {
    fn group(&self) -> &'static str {
        "stdio gateway"
    }

    fn case(&self) -> String {
        "from exec to the first answer".to_owned()
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal::at_most(
            Metric::Milliseconds,
            FIRST_ANSWER_MILLISECONDS,
        ))
    }

    fn rounds(&self) -> usize {
        25
    }

    fn rounds_of_peers(&self) -> usize {
        5
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let server = bare_server()?;
        let Some(mut command) = command(peer, &server)? else {
            return Ok(None);
        };
        let began = Instant::now();
        let mut pipe = Pipe::open(&mut command, places)?;
        pipe.initialize()?;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        drop(pipe);
        server.terminate()?;
        Ok(Some(vec![(Metric::Milliseconds, milliseconds)]))
    }
}

fn bare_server() -> Result<ServerProcess, Failure> {
    let mut command = programs::command("bare")?;
    command.args(["http", "--listen", "127.0.0.1:0"]);
    ServerProcess::start(&mut command)
}

/// Returns the command of the gateway of this peer in front of a server.
fn command(peer: &Peer, server: &ServerProcess) -> Result<Option<Command>, Failure> {
    let url = format!("http://{}{}", server.address(), server.path());
    if peer.role == Role::Peer {
        return Ok(peer.stdio_gateway(&url));
    }
    let mut command = Command::new(program()?);
    command.args(["bridge", "--stdio", &url]);
    Ok(Some(command))
}

/// Returns `turnbuckle`, in the folder of this binary; it is built first if anything has changed.
fn program() -> Result<PathBuf, Failure> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| error.to_string()));
    built.clone().map_err(Into::into)
}

fn build() -> Result<PathBuf, Failure> {
    let here = std::env::current_exe()?;
    let folder = here.parent().ok_or("no build folder")?;
    let target = folder.parent().ok_or("no build folder")?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let status = Command::new("cargo")
        .args(["build", "--locked", "--quiet", "-p", "turnbuckle-cli"])
        .args(["--profile", profile])
        .arg("--manifest-path")
        .arg(workspace)
        .arg("--target-dir")
        .arg(target)
        // As this binary is built, so that both use the same dependencies.
        .env("CARGO_PROFILE_DIST_STRIP", "none")
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(folder.join("turnbuckle"))
    } else {
        Err(format!("turnbuckle: cargo build: {status}").into())
    }
}
