//! Runs a server under callgrind and counts what its calls did.
//!
//! Each figure is the difference between two whole runs, one with N calls and one with 2 N, divided by
//! N. Start, warm-up and shutdown are the same in both and cancel out, and nothing has to be switched
//! on or off inside a running process.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use turnbuckle_bench::{
    Failure, message,
    process::{ServerProcess, terminate},
};

use crate::{
    scenario::{Scenario, Server, Transport},
    wire::{Http, Pipes, Wire},
};

const WARM_UP: u64 = 100;

/// What one call costs a server.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    pub(crate) instructions: f64,
    /// Calls of `malloc`, `calloc`, `realloc` and their aligned kin.
    pub(crate) allocations: f64,
    /// Calls of the C library's functions that write to a descriptor.
    pub(crate) writes: f64,
    /// One whole answer, to see whether two servers say the same.
    pub(crate) answer: String,
}

/// The tool, found and ready to be used.
#[derive(Debug)]
pub(crate) struct Callgrind {
    /// One processor, so that a runtime starts one worker and wakes no other.
    pinned: bool,
    keep: Option<PathBuf>,
}

impl Callgrind {
    pub(crate) fn new(keep: Option<PathBuf>) -> Result<Callgrind, Failure> {
        let works = |command: &mut Command| {
            let run = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            run.is_ok_and(|status| status.success())
        };
        if !works(Command::new("valgrind").arg("--version")) {
            return Err("`valgrind` is needed and was not found".into());
        }
        if let Some(directory) = &keep {
            std::fs::create_dir_all(directory)?;
        }
        let pinned = works(Command::new("taskset").args(["-c", "0", "true"]));
        Ok(Callgrind { pinned, keep })
    }

    /// Measures one call of `scenario`.
    pub(crate) fn per_call(
        &self,
        scenario: &Scenario,
        calls: u64,
        server: Server,
        program: &Path,
    ) -> Result<Cost, Failure> {
        let context = |error| format!("{} on {}: {error}", scenario.name, server.name());
        let (once, _) = self
            .profile(scenario, calls, server, program)
            .map_err(context)?;
        let (twice, answer) = self
            .profile(scenario, 2 * calls, server, program)
            .map_err(context)?;
        let each = |twice: u64, once: u64| (twice as f64 - once as f64) / calls as f64;
        Ok(Cost {
            instructions: each(twice.instructions, once.instructions),
            allocations: each(twice.allocations, once.allocations),
            writes: each(twice.writes, once.writes),
            answer,
        })
    }

    fn profile(
        &self,
        scenario: &Scenario,
        calls: u64,
        server: Server,
        program: &Path,
    ) -> Result<(Profile, String), Failure> {
        let file = self.file(scenario, calls, server);
        let mut command = self.command(&file);
        command
            .arg(program)
            .args(server.arguments(scenario.transport));
        let answer = match scenario.transport {
            Transport::Http => over_http(&mut command, scenario, calls)?,
            Transport::Stdio => over_stdio(&mut command, scenario, calls)?,
        };
        let profile = std::fs::read(&file)?;
        if self.keep.is_none() {
            std::fs::remove_file(&file)?;
        }
        Ok((Profile::parse(&String::from_utf8_lossy(&profile))?, answer))
    }

    fn command(&self, file: &Path) -> Command {
        let mut command = if self.pinned {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", "valgrind"]);
            command
        } else {
            Command::new("valgrind")
        };
        command.args(["--tool=callgrind", "--quiet"]);
        command.arg(format!("--callgrind-out-file={}", file.display()));
        command
    }

    fn file(&self, scenario: &Scenario, calls: u64, server: Server) -> PathBuf {
        let name = format!("{}.{}.{calls}.callgrind", scenario.name, server.name());
        match &self.keep {
            Some(directory) => directory.join(name),
            None => std::env::temp_dir().join(format!("{}.{name}", std::process::id())),
        }
    }
}

fn over_http(command: &mut Command, scenario: &Scenario, calls: u64) -> Result<String, Failure> {
    let process = ServerProcess::start(command)?;
    let answer = drive(
        Wire::Http(Http::connect(process.address())?),
        scenario,
        calls,
    )?;
    process.terminate()?;
    Ok(answer)
}

fn over_stdio(command: &mut Command, scenario: &Scenario, calls: u64) -> Result<String, Failure> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (input, output) = pipes.expect("both pipes were asked for");
    match drive(Wire::Stdio(Pipes::new(input, output)), scenario, calls) {
        // The end of its input is the end of a stdio server.
        Ok(answer) => child.wait().map(|_| answer).map_err(Failure::from),
        Err(error) => terminate(&mut child).and(Err(error)),
    }
}

/// Calls one after another, checks each answer, and returns the last.
fn drive(mut wire: Wire, scenario: &Scenario, calls: u64) -> Result<String, Failure> {
    let text = message::text(scenario.size);
    let arguments = format!(r#"{{"message":"{text}"}}"#);
    wire.open(scenario.era)?;
    let mut answer = String::new();
    for turn in 0..WARM_UP + calls {
        // Ids of one length, and the last one the same in every run.
        let id = 1_000_000 - (WARM_UP + calls) + turn;
        answer = wire.echo(
            scenario.era,
            &message::call(scenario.era, id, "echo", &arguments),
        )?;
        if !(answer.contains(&text) && answer.contains(&id.to_string())) {
            return Err(format!("wrong answer to call {id}: {answer:.300}").into());
        }
    }
    Ok(answer)
}

/// What callgrind wrote about one whole run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Profile {
    instructions: u64,
    allocations: u64,
    writes: u64,
}

impl Profile {
    /// Sums the calls of the functions of interest: `cfn=(7) malloc` names a callee once, `cfn=(7)` refers to it
    /// later, and `calls=3 …` after it counts.
    fn parse(text: &str) -> Result<Profile, Failure> {
        let mut profile = Profile::default();
        let mut kinds = std::collections::HashMap::new();
        let mut callee = "";
        for line in text.lines() {
            if let Some(name) = line
                .strip_prefix("cfn=")
                .or_else(|| line.strip_prefix("fn="))
            {
                let (id, name) = name.split_once(' ').unwrap_or((name, ""));
                if !name.is_empty() {
                    kinds.insert(id, Kind::of(name));
                }
                if line.starts_with('c') {
                    callee = id;
                }
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let count: u64 = calls.split(' ').next().unwrap_or_default().parse()?;
                match kinds.get(callee) {
                    Some(Kind::Allocation) => profile.allocations += count,
                    Some(Kind::Write) => profile.writes += count,
                    _ => {}
                }
            } else if let Some(total) = line.strip_prefix("totals: ") {
                profile.instructions += total.trim().parse::<u64>()?;
            }
        }
        match profile.instructions {
            0 => Err("callgrind wrote no totals".into()),
            _ => Ok(profile),
        }
    }
}

#[derive(Debug)]
enum Kind {
    Allocation,
    Write,
    Other,
}

impl Kind {
    fn of(function: &str) -> Kind {
        match function {
            "malloc" | "calloc" | "realloc" | "posix_memalign" | "aligned_alloc" | "memalign" => {
                Kind::Allocation
            }
            "write" | "writev" | "send" | "sendto" | "sendmsg" => Kind::Write,
            _ => Kind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_calls_by_name_and_by_reference() {
        let text = "fn=(1) main\n+1 5\ncob=(2) libc\ncfn=(7) malloc\ncalls=3 0\n* 90\n\
                    fn=(2) other\ncfn=(7)\ncalls=4 0\n* 9\ncfn=(8) free\ncalls=7 0\n* 1\ncfn=(9) writev\ncalls=1 +2\n* 1\n\
                    totals: 1234\n";

        let profile = Profile::parse(text).unwrap();

        assert_eq!(
            profile,
            Profile {
                instructions: 1234,
                allocations: 7,
                writes: 1
            }
        );
        assert!(Profile::parse("").is_err());
    }
}
