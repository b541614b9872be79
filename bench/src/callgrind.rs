//! Runs a server under callgrind and counts what its requests did.
//!
//! Each figure is the difference between two whole runs, one with N requests and one with 2 N, divided by
//! N. Start, warm-up and shutdown are the same in both and cancel out, so callgrind need not be switched
//! on or off inside a running process.

mod client_cost;
mod profile;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub use profile::Profile;

use crate::{
    Failure,
    process::{ServerProcess, terminate},
    wire::{Http, Pipes, Wire},
    work::{Prepared, Transport, Work},
};

/// The cost of one request to a server.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Instructions in user space.
    pub instructions: f64,
    /// Calls of `malloc`, `calloc`, `realloc` and their aligned variants.
    pub allocations: f64,
    /// Calls of the C library's functions that write to a descriptor.
    pub writes: f64,
    /// Tasks spawned on tokio; `None` for a program without symbols.
    pub spawns: Option<f64>,
    /// One whole response, to compare the bytes of two servers.
    pub response: String,
}

impl Cost {
    /// Returns the cost of one of the `count` requests that the second run had more than the first.
    fn between(once: Profile, twice: Profile, count: u64, response: String) -> Cost {
        let each = |twice: u64, once: u64| (twice as f64 - once as f64) / count as f64;
        Cost {
            instructions: each(twice.instructions, once.instructions),
            allocations: each(twice.allocations, once.allocations),
            writes: each(twice.writes, once.writes),
            spawns: Some(each(twice.spawns, once.spawns)),
            response,
        }
    }
}

/// Runs commands under valgrind's callgrind.
#[derive(Debug)]
pub struct Callgrind {
    /// One processor, so that a runtime starts one worker and wakes no other; `None` if pinning does not work.
    processor: Option<usize>,
    keep: Option<PathBuf>,
}

impl Callgrind {
    /// Looks for valgrind; profiles are kept in the folder `keep`, if there is one.
    pub fn new(keep: Option<PathBuf>) -> Result<Callgrind, Failure> {
        if !works(Command::new("valgrind").arg("--version")) {
            return Err("`valgrind` is needed and was not found".into());
        }
        if let Some(directory) = &keep {
            std::fs::create_dir_all(directory)?;
        }
        Ok(Callgrind {
            processor: None,
            keep,
        }
        .on(0))
    }

    /// Returns the same on another processor, if there is one: counts do not depend on other processes.
    #[must_use]
    pub fn on(&self, processor: usize) -> Callgrind {
        let pinned = ["-c", &processor.to_string(), "true"];
        let is_there = works(Command::new("taskset").args(pinned));
        Callgrind {
            processor: is_there.then_some(processor).or(self.processor),
            keep: self.keep.clone(),
        }
    }

    /// Measures one request on the server that a command starts; `name` is for files and errors.
    pub fn per_request(
        &self,
        work: Work,
        requests: u64,
        server: &Command,
        name: &str,
    ) -> Result<Cost, Failure> {
        // As many as are counted, but not so many that an expensive request takes minutes; the same in both runs.
        let warm_up = requests.min(100);
        let run = |requests| {
            self.profile(work, warm_up + requests, server, name)
                .map_err(|error| format!("{name}: {error}"))
        };
        let (once, _) = run(requests)?;
        let (twice, response) = run(2 * requests)?;
        // Every connection is a task, so a count of zero means that tasks are not visible.
        let sees_tasks = work.transport == Transport::Stdio || once.spawns > 0;
        let cost = Cost::between(once, twice, requests, response);
        Ok(Cost {
            spawns: cost.spawns.filter(|_| sees_tasks),
            ..cost
        })
    }

    fn profile(
        &self,
        work: Work,
        requests: u64,
        server: &Command,
        name: &str,
    ) -> Result<(Profile, String), Failure> {
        let file = self.file(&format!("{name}.{requests}.callgrind"));
        let mut command = self.around(server, &file);
        let prepared = Prepared::new(work);
        let response = match work.transport {
            Transport::Http => over_http(&mut command, work, &prepared, requests)?,
            Transport::Stdio => over_stdio(&mut command, work, &prepared, requests)?,
        };
        Ok((self.read(&file)?, response))
    }

    fn read(&self, file: &Path) -> Result<Profile, Failure> {
        let profile = std::fs::read(file)?;
        if self.keep.is_none() {
            std::fs::remove_file(file)?;
        }
        Profile::parse(&String::from_utf8_lossy(&profile))
    }

    /// Returns the command that runs a server under callgrind.
    fn around(&self, server: &Command, file: &Path) -> Command {
        let mut command = match self.processor {
            Some(processor) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &processor.to_string(), "valgrind"]);
                command
            }
            None => Command::new("valgrind"),
        };
        command.args(["--tool=callgrind", "--quiet"]);
        command.arg(format!("--callgrind-out-file={}", file.display()));
        command.arg(server.get_program()).args(server.get_args());
        if let Some(folder) = server.get_current_dir() {
            command.current_dir(folder);
        }
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        match &self.keep {
            Some(directory) => directory.join(name),
            None => std::env::temp_dir().join(format!("{}.{name}", std::process::id())),
        }
    }
}

fn works(command: &mut Command) -> bool {
    let run = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

fn over_http(
    command: &mut Command,
    work: Work,
    prepared: &Prepared,
    requests: u64,
) -> Result<String, Failure> {
    let process = ServerProcess::start(command)?;
    let wire = Wire::Http(Http::connect(process.address(), process.path())?);
    let response = drive(wire, work, prepared, requests)?;
    process.terminate()?;
    Ok(response)
}

fn over_stdio(
    command: &mut Command,
    work: Work,
    prepared: &Prepared,
    requests: u64,
) -> Result<String, Failure> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (input, output) = pipes.expect("both pipes were requested");
    let wire = Wire::Stdio(Pipes::new(input, output));
    match drive(wire, work, prepared, requests) {
        // A stdio server exits at the end of its input.
        Ok(response) => child.wait().map(|_| response).map_err(Failure::from),
        Err(error) => terminate(&mut child).and(Err(error)),
    }
}

/// Sends the requests one after another, checks each response, and returns the last.
fn drive(
    mut wire: Wire,
    work: Work,
    prepared: &Prepared,
    requests: u64,
) -> Result<String, Failure> {
    wire.open(work.era)?;
    let mut response = String::new();
    for turn in 0..requests {
        // Ids of one length; the last one is the same in every run.
        let id = 1_000_000 - requests + turn;
        let received = wire.request(prepared, &prepared.body(id))?;
        prepared.check(id, &received)?;
        response = received.response;
    }
    Ok(response)
}
