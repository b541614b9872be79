//! The process groups that a supervisor answers for.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How long processes may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How often to look whether they have ended.
const INTERVAL: Duration = Duration::from_millis(20);

/// Process groups, each with the start time of its leader where that can be known.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<i32, Option<u64>>);

impl Groups {
    pub(super) fn add(&mut self, id: i32) {
        self.0.insert(id, start_time(id));
    }

    pub(super) fn remove(&mut self, id: i32) {
        self.0.remove(&id);
    }

    /// Ends all of them: by SIGTERM, and those that are left after a while by SIGKILL.
    pub(super) fn end(self) {
        let known = self.0.into_iter();
        let known = known.filter(|(id, started)| is_same(*id, *started));
        let mut alive: Vec<_> = known.filter_map(|(id, _)| Pid::from_raw(id)).collect();
        alive.retain(|group| kill_process_group(*group, Signal::TERM).is_ok());
        let begun = Instant::now();
        while !alive.is_empty() && begun.elapsed() < GRACE {
            sleep(INTERVAL);
            // A number that was seen unused may come to mean others, so it is never looked at again.
            alive.retain(|group| test_kill_process_group(*group).is_ok());
        }
        for group in alive {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Says whether a number still means the group that was registered.
///
/// A number is not used for a new process while there is a group of it. So a process of this number that started at another
/// time shows that the group is gone.
fn is_same(id: i32, started: Option<u64>) -> bool {
    match start_time(id) {
        None => true,
        now => now == started,
    }
}

/// Returns when a process started, in the unit of the kernel; `None` if there is none, or no `/proc` to see it in.
fn start_time(id: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program stands in brackets, and may have some itself. The start time is the 22nd field.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> (Child, i32) {
        let mut command = Command::new("sleep");
        let child = command.arg("1000").process_group(0).spawn().unwrap();
        let id = child.id().try_into().unwrap();
        (child, id)
    }

    #[test]
    fn groups_that_are_left_are_ended() {
        let ((mut left, left_id), (mut removed, removed_id)) = (sleeper(), sleeper());
        let mut groups = Groups::default();
        groups.add(left_id);
        groups.add(removed_id);
        groups.remove(removed_id);

        // The test has to wait for its child, or that would be a zombie, which counts as a member of its group.
        let waiting = std::thread::spawn(move || left.wait().unwrap());
        groups.end();

        assert_eq!(waiting.join().unwrap().signal(), Some(15));
        assert!(removed.try_wait().unwrap().is_none());
        removed.kill().unwrap();
        removed.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_number_that_means_another_process_by_now_is_left_alone() {
        let (mut other, id) = sleeper();
        let started = start_time(id).unwrap();

        Groups(BTreeMap::from([(id, Some(started - 1))])).end();
        Groups(BTreeMap::from([(id, None)])).end();

        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
