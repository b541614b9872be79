//! Runs a server under callgrind and counts what its requests did.
//!
//! Each figure is the difference between two whole runs, one with N requests and one with 2 N, divided by
//! N. Start, warm-up and shutdown are the same in both and cancel out, and nothing has to be switched
//! on or off inside a running process.

mod calling;
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

/// What one request costs a server.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Instructions in user space.
    pub instructions: f64,
    /// Calls of `malloc`, `calloc`, `realloc` and their aligned kin.
    pub allocations: f64,
    /// Calls of the C library's functions that write to a descriptor.
    pub writes: f64,
    /// Tasks that tokio was given; `None` where they have no symbols to be counted by.
    pub spawns: Option<f64>,
    /// One whole answer, to see whether two servers say the same.
    pub answer: String,
}

impl Cost {
    /// What one of `count` requests cost by which the second run had more than the first.
    fn between(once: Profile, twice: Profile, count: u64, answer: String) -> Cost {
        let each = |twice: u64, once: u64| (twice as f64 - once as f64) / count as f64;
        Cost {
            instructions: each(twice.instructions, once.instructions),
            allocations: each(twice.allocations, once.allocations),
            writes: each(twice.writes, once.writes),
            spawns: Some(each(twice.spawns, once.spawns)),
            answer,
        }
    }
}

/// The tool, found and ready to be used.
#[derive(Debug)]
pub struct Callgrind {
    /// One processor, so that a runtime starts one worker and wakes no other; `None` where that cannot be had.
    processor: Option<usize>,
    keep: Option<PathBuf>,
}

impl Callgrind {
    /// Looks for valgrind; profiles are left in the folder `keep`, if there is one.
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

    /// The same on another processor, if there is one: counts do not depend on who runs beside.
    #[must_use]
    pub fn on(&self, processor: usize) -> Callgrind {
        let pinned = ["-c", &processor.to_string(), "true"];
        let is_there = works(Command::new("taskset").args(pinned));
        Callgrind {
            processor: is_there.then_some(processor).or(self.processor),
            keep: self.keep.clone(),
        }
    }

    /// Measures one request of a kind on the server that a command starts; `name` is for files and errors.
    pub fn per_request(
        &self,
        work: Work,
        requests: u64,
        server: &Command,
        name: &str,
    ) -> Result<Cost, Failure> {
        // As many as are counted, but not so many that a costly request takes minutes; the same in both runs.
        let warm_up = requests.min(100);
        let run = |requests| {
            self.profile(work, warm_up + requests, server, name)
                .map_err(|error| format!("{name}: {error}"))
        };
        let (once, _) = run(requests)?;
        let (twice, answer) = run(2 * requests)?;
        // Every connection is a task, so a count of none means that tasks cannot be seen.
        let sees_tasks = work.transport == Transport::Stdio || once.spawns > 0;
        let cost = Cost::between(once, twice, requests, answer);
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
        let answer = match work.transport {
            Transport::Http => over_http(&mut command, work, &prepared, requests)?,
            Transport::Stdio => over_stdio(&mut command, work, &prepared, requests)?,
        };
        Ok((self.read(&file)?, answer))
    }

    fn read(&self, file: &Path) -> Result<Profile, Failure> {
        let profile = std::fs::read(file)?;
        if self.keep.is_none() {
            std::fs::remove_file(file)?;
        }
        Profile::parse(&String::from_utf8_lossy(&profile))
    }

    /// The command that runs a server under callgrind.
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
    let answer = drive(wire, work, prepared, requests)?;
    process.terminate()?;
    Ok(answer)
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
    let (input, output) = pipes.expect("both pipes were asked for");
    let wire = Wire::Stdio(Pipes::new(input, output));
    match drive(wire, work, prepared, requests) {
        // The end of its input is the end of a stdio server.
        Ok(answer) => child.wait().map(|_| answer).map_err(Failure::from),
        Err(error) => terminate(&mut child).and(Err(error)),
    }
}

/// Asks one time after another, checks each answer, and returns the last.
fn drive(
    mut wire: Wire,
    work: Work,
    prepared: &Prepared,
    requests: u64,
) -> Result<String, Failure> {
    wire.open(work.era)?;
    let mut answer = String::new();
    for turn in 0..requests {
        // Ids of one length, and the last one the same in every run.
        let id = 1_000_000 - requests + turn;
        let received = wire.ask(prepared, &prepared.body(id))?;
        prepared.check(id, &received)?;
        answer = received.answer;
    }
    Ok(answer)
}
