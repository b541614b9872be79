//! A server as a child process: its address, its memory, its end.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::Failure;

/// A running server that printed its address on stderr; it is killed when this is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    address: SocketAddr,
    path: String,
}

impl ServerProcess {
    /// Starts the command and waits for its line `listening on http://ADDR/PATH`.
    pub fn start(command: &mut Command) -> Result<ServerProcess, Failure> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr was requested"));
        let mut output = String::new();
        while stderr.read_line(&mut output)? > 0 {
            if let Some((address, path)) = output.lines().next_back().and_then(listening) {
                // A full pipe would block the server, so everything else it prints goes to our stderr.
                std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::stderr()));
                return Ok(ServerProcess {
                    child,
                    address,
                    path,
                });
            }
        }
        let status = child.wait()?;
        Err(format!("{command:?} ended with {status} before it listened: {output}").into())
    }

    /// Returns the address that it printed.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the path that it printed, with its slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads the CPU time of its threads, in nanoseconds; threads that have ended are not counted.
    pub fn cpu(&self) -> Result<Duration, Failure> {
        cpu_time(self.child.id())
    }

    /// Reads its current and peak memory.
    pub fn memory(&self) -> Result<Memory, Failure> {
        Memory::read(self.child.id())
    }

    /// Terminates it and waits until it has exited.
    pub fn terminate(mut self) -> Result<(), Failure> {
        terminate(&mut self.child)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends SIGTERM and waits for the end, whatever the exit status.
pub fn terminate(child: &mut Child) -> Result<(), Failure> {
    kill_process(Pid::from_child(child), Signal::TERM)?;
    child.wait()?;
    Ok(())
}

/// Reads the CPU time of the threads of a process; threads that have ended are not counted.
pub fn cpu_time(process: u32) -> Result<Duration, Failure> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let schedule = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let running = schedule.split_whitespace().next().unwrap_or_default();
        nanoseconds += running.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Reads the CPU time of those children of this process that were waited for.
pub fn children_cpu_time() -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let ticks = ticks_of_children(&stat).ok_or("/proc/self/stat lacks the times of children")?;
    Ok(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second())?)
}

/// Adds user and system time of children; the name before them may hold spaces and parentheses.
fn ticks_of_children(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Resident memory of a process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The current size.
    pub now: u64,
    /// The peak size.
    pub peak: u64,
}

impl Memory {
    /// Reads the memory of a process.
    pub fn read(process: u32) -> Result<Memory, Failure> {
        Memory::parse(&std::fs::read_to_string(format!("/proc/{process}/status"))?)
    }

    fn parse(status: &str) -> Result<Memory, Failure> {
        let field = |name: &str| -> Result<u64, Failure> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes = line.and_then(|line| line.split_whitespace().next());
            Ok(kibibytes.ok_or("the process is gone")?.parse::<u64>()? * 1024)
        };
        Ok(Memory {
            now: field("VmRSS:")?,
            peak: field("VmHWM:")?,
        })
    }
}

fn listening(line: &str) -> Option<(SocketAddr, String)> {
    let place = line.trim_end().strip_prefix("listening on http://")?;
    let (address, path) = place.split_once('/')?;
    Some((address.parse().ok()?, format!("/{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_address_in_the_line_that_names_it() {
        let (address, path) = listening("listening on http://127.0.0.1:8080/mcp").unwrap();

        assert_eq!(address, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(path, "/mcp");
        assert_eq!(listening("starting"), None);
    }

    #[test]
    fn adds_the_times_of_children_whatever_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 3 4 20 0";

        assert_eq!(ticks_of_children(stat), Some(7));
        assert_eq!(ticks_of_children(""), None);
    }

    #[test]
    fn reads_memory_from_the_status_of_a_process() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";

        let memory = Memory::parse(status).unwrap();

        assert_eq!((memory.now, memory.peak), (1 << 20, 2 << 20));
        assert!(Memory::parse("State:\tZ (zombie)\n").is_err());
    }
}
