//! Pins processes: servers to one core, the driver to another, so that neither slows the other.

use std::process::{Child, Command};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Failure;

/// The cores that a benchmark uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// `None` on a machine with a single core: nothing is pinned there.
    pair: Option<(usize, usize)>,
}

impl Cores {
    /// Takes the first two cores that this process may use, and moves this thread to the second.
    ///
    /// Call it before a runtime is created: threads inherit their affinity.
    pub fn take() -> Result<Cores, Failure> {
        let allowed = sched_getaffinity(None)?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let pair = cores.next().zip(cores.next());
        if let Some((_, driver)) = pair {
            sched_setaffinity(None, &only(driver))?;
        }
        Ok(Cores { pair })
    }

    /// Returns whether the server and the driver have a core each.
    pub fn are_apart(self) -> bool {
        self.pair.is_some()
    }

    /// Starts a command on the server's core.
    pub fn spawn(self, command: &mut Command) -> Result<Child, Failure> {
        self.on_the_servers_core(|| {
            command
                .spawn()
                .map_err(|error| format!("cannot start {command:?}: {error}").into())
        })
    }

    /// Runs `work` while this thread, and every child it starts, may use both cores.
    pub fn on_both_cores<T>(self, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let Some((server, driver)) = self.pair else {
            return work();
        };
        let mut both = only(server);
        both.set(driver);
        sched_setaffinity(None, &both)?;
        let done = work();
        sched_setaffinity(None, &only(driver))?;
        done
    }

    /// Runs `start` while this thread is on the server's core, which its children inherit.
    pub fn on_the_servers_core<T>(
        self,
        start: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some((server, driver)) = self.pair else {
            return start();
        };
        sched_setaffinity(None, &only(server))?;
        let started = start();
        sched_setaffinity(None, &only(driver))?;
        started
    }
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_runs_on_another_core_than_its_driver() {
        let places = Cores::take().unwrap();
        let show = "grep Cpus_allowed_list /proc/self/status";
        let mut command = Command::new("sh");
        command
            .args(["-c", show])
            .stdout(std::process::Stdio::piped());

        let child = places
            .spawn(&mut command)
            .unwrap()
            .wait_with_output()
            .unwrap();
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let own = own
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list"));

        let child = String::from_utf8(child.stdout).unwrap();
        assert_eq!(Some(child.trim_end()) != own, places.are_apart());
    }
}
