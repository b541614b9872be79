//! The cost of a program before its first call: its start, its memory, its size.
//!
//! Ours is `bench/hello`, the first server of a user; the peers' servers are of the same kind.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use turnbuckle_bench::{Failure, cores::Cores};

use crate::programs::compare::{
    figure::{Figure, Goal, Metric, Sample},
    hello,
    peer::{Peer, Role},
    pipe::Pipe,
};

/// How long a server is idle before its memory is read.
const IDLE: Duration = Duration::from_millis(200);
const MEGABYTE: f64 = 1e6;

/// Returns every figure of this group.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    vec![Box::new(FirstAnswer), Box::new(Idle), Box::new(Size)]
}

/// The time from starting a process until it has responded to `initialize`.
struct FirstAnswer;

impl Figure for FirstAnswer {
    fn group(&self) -> &'static str {
        "start"
    }

    fn case(&self) -> String {
        "from exec to the first answer on stdio".to_owned()
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal::at_most(Metric::Milliseconds, 2.0))
    }

    fn rounds(&self) -> usize {
        25
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let Some(mut command) = program(peer)? else {
            return Ok(None);
        };
        let began = Instant::now();
        let mut pipe = Pipe::open(&mut command, places)?;
        pipe.initialize()?;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        Ok(Some(vec![(Metric::Milliseconds, milliseconds)]))
    }
}

/// The memory of a process after its first response, while it is idle.
struct Idle;

impl Figure for Idle {
    fn group(&self) -> &'static str {
        "start"
    }

    fn case(&self) -> String {
        "resident memory after the first answer, idle".to_owned()
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal::at_most(Metric::Megabytes, 5.0))
    }

    fn leaves_out(&self, peer: &Peer) -> Option<&'static str> {
        leaves_out_limit(peer)
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let Some(mut command) = program(peer)? else {
            return Ok(None);
        };
        let mut pipe = Pipe::open(&mut command, places)?;
        pipe.initialize()?;
        thread::sleep(IDLE);
        let megabytes = pipe.memory()?.now as f64 / MEGABYTE;
        Ok(Some(vec![(Metric::Megabytes, megabytes)]))
    }
}

/// The size of the program file, without symbols.
struct Size;

impl Figure for Size {
    fn group(&self) -> &'static str {
        "start"
    }

    fn case(&self) -> String {
        "size of the program, stripped".to_owned()
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal::at_most(Metric::Megabytes, 4.0))
    }

    fn leaves_out(&self, peer: &Peer) -> Option<&'static str> {
        leaves_out_limit(peer)
    }

    fn rounds(&self) -> usize {
        1
    }

    fn round(&self, peer: &Peer, _: Cores) -> Result<Option<Sample>, Failure> {
        let program = match peer.role {
            Role::Ours => Some(hello::program()?),
            Role::Limit | Role::Peer => peer.program().map(Path::to_owned),
        };
        let Some(program) = program else {
            return Ok(None);
        };
        let megabytes = stripped_size(&program)? as f64 / MEGABYTE;
        Ok(Some(vec![(Metric::Megabytes, megabytes)]))
    }
}

/// The file and the resident memory of the limit are those of the whole binary, which is much larger than the limit.
fn leaves_out_limit(peer: &Peer) -> Option<&'static str> {
    (peer.role == Role::Limit).then_some("is one of several programs in a binary")
}

/// Returns the stdio server to start: of ours the smallest.
fn program(peer: &Peer) -> Result<Option<Command>, Failure> {
    match peer.role {
        Role::Ours => {
            let mut command = Command::new(hello::program()?);
            command.arg("--stdio");
            Ok(Some(command))
        }
        Role::Limit | Role::Peer => Ok(peer.stdio(&[])),
    }
}

fn stripped_size(program: &Path) -> Result<u64, Failure> {
    let copy: PathBuf = std::env::temp_dir().join(format!("stripped-{}", std::process::id()));
    let status = Command::new("strip")
        .arg("-o")
        .arg(&copy)
        .arg(program)
        .status()?;
    let size = std::fs::metadata(&copy).map(|file| file.len());
    let _ = std::fs::remove_file(&copy);
    if status.success() {
        Ok(size?)
    } else {
        Err(format!("cannot strip {}", program.display()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::compare::peer;

    #[test]
    fn the_limit_has_a_start_but_no_size_of_its_own() {
        for peer in peer::all().unwrap() {
            let is_limit = peer.role == Role::Limit;

            assert_eq!(FirstAnswer.leaves_out(&peer), None);
            assert_eq!(Idle.leaves_out(&peer).is_some(), is_limit);
            assert_eq!(Size.leaves_out(&peer).is_some(), is_limit);
        }
    }
}
