//! Ends the programs that this process started if it is killed.
//!
//! A process cannot react to SIGKILL. So a second process of this binary, the supervisor, holds the reading end of a
//! pipe. Its only writing end is in this process. [`Supervisor`] writes the live process groups to the pipe. When
//! the pipe closes, for any reason, the supervisor ends the groups that are left. It starts with the first program,
//! and ends with this process. A line in the pipe is `add GROUP` or `remove GROUP`.
//!
//! A program starts through this binary as a launcher. The launcher waits for a byte from this process, which comes
//! after the registration, and then replaces itself with the program. If this process is killed before that, the
//! launcher reads the end of its input and exits.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs,
    io::{self, BufRead as _, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitCode, Stdio},
    sync::Mutex,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::signal::unix::{SignalKind, signal};
use turnbuckle_client::stdio::ProcessObserver;

use crate::lock;

/// The only argument of a supervisor process.
const SUPERVISOR_ARGUMENT: &str = "supervise-children";
/// The first argument of a launcher; the program and its arguments follow.
const LAUNCHER_ARGUMENT: &str = "launch-child";
/// The first argument of a process that ends itself by a signal; the number of the signal follows.
const SIGNAL_ARGUMENT: &str = "end-by-signal";
/// The exit code of a launcher that cannot start its program, as in shells.
const CANNOT_START: u8 = 127;

/// Reports process groups to the supervisor process. There is one for the whole process.
#[derive(Debug, Default)]
pub(crate) struct Supervisor(Mutex<SupervisorState>);

#[derive(Debug, Default)]
struct SupervisorState {
    /// The supervisor process, once it is needed. Its stdin is the writing end of the pipe.
    process: Option<Child>,
    groups: BTreeSet<u32>,
}

impl Supervisor {
    /// Adds a process group that is ended when this process is gone.
    pub(crate) fn register(&self, group: u32) {
        self.update(|state| {
            state.groups.insert(group);
            state.send(&format!("add {group}\n"))
        });
    }

    /// Removes a process group. Call this as soon as it is gone, because its id may be reused.
    pub(crate) fn unregister(&self, group: u32) {
        self.update(|state| {
            state.groups.remove(&group);
            state.send(&format!("remove {group}\n"))
        });
    }

    /// Starts the supervisor process, so that the first program is registered quickly.
    pub(crate) fn prepare(&self) {
        self.update(|state| state.send(""));
    }

    /// Errors are only logged: without a supervisor, programs outlive a killed process, and all else works.
    fn update(&self, change: impl FnOnce(&mut SupervisorState) -> io::Result<()>) {
        let mut state = lock(&self.0);
        if let Err(error) = change(&mut state) {
            tracing::warn!(%error, "no supervisor: child programs would outlive a killed process");
        }
    }
}

impl ProcessObserver for Supervisor {
    fn starting(&self) {
        self.prepare();
    }

    /// `None` if the file of this binary is gone, for example after an update: then programs start directly.
    fn launcher(&self) -> Option<Vec<OsString>> {
        let binary = env::current_exe().ok().filter(|path| path.exists())?;
        Some(vec![binary.into(), LAUNCHER_ARGUMENT.into()])
    }

    fn started(&self, id: u32) {
        self.register(id);
    }

    fn ended(&self, id: u32) {
        self.unregister(id);
    }
}

impl SupervisorState {
    /// Writes a line. Starts a supervisor process if there is none, and registers all groups with it.
    fn send(&mut self, line: &str) -> io::Result<()> {
        if let Some(process) = &mut self.process {
            if write(process, line).is_ok() {
                return Ok(());
            }
            let _ = process.try_wait();
        }
        let mut process = start()?;
        for group in &self.groups {
            write(&mut process, &format!("add {group}\n"))?;
        }
        self.process = Some(process);
        Ok(())
    }
}

fn write(process: &mut Child, line: &str) -> io::Result<()> {
    let pipe = process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    pipe.write_all(line.as_bytes())
}

/// Starts a supervisor process.
///
/// It leads its own process group, so that Ctrl-C does not reach it. It does not hold stdout, stderr or the current
/// directory, so that a reader of a pipe sees its end when this process is gone.
fn start() -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .arg(SUPERVISOR_ARGUMENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()
}

/// Runs this process as a supervisor or launcher if it was started as one.
pub(crate) fn run_if_started_as_one() -> Option<ExitCode> {
    let mut words = env::args_os().skip(1);
    let role = words.next()?;
    match (role.to_str()?, words.next()) {
        (SUPERVISOR_ARGUMENT, None) => Some(supervise()),
        (LAUNCHER_ARGUMENT, Some(program)) => Some(launch(Command::new(program).args(words))),
        (SIGNAL_ARGUMENT, Some(signal)) => Some(raise(signal.to_str()?.parse().ok()?)),
        _ => None,
    }
}

/// Ends this process by a signal, so that its parent sees the signal. Returns only if that fails.
///
/// A handler of this process stays installed, but not in a new program: so this process is replaced by itself.
#[allow(dead_code, reason = "used by the optional command `record`")]
pub(crate) fn end_by_signal(signal: i32) {
    if let Ok(binary) = env::current_exe() {
        let mut command = Command::new(binary);
        let error = command.arg(SIGNAL_ARGUMENT).arg(signal.to_string()).exec();
        tracing::debug!(%error, "cannot end by a signal");
    }
}

/// Sends a signal to this process. If it is ignored, exits as shells do.
fn raise(signal: i32) -> ExitCode {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(rustix::process::getpid(), signal);
    }
    ExitCode::from((128 + (signal & 0x7f)) as u8)
}

/// Waits for a byte, and replaces this process with the program; exits if the input ends.
fn launch(command: &mut Command) -> ExitCode {
    // Read without a buffer: everything after the byte is for the program.
    match rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut [0; 1])) {
        Ok(1..) => {}
        _ => return ExitCode::SUCCESS,
    }
    let error = command.exec();
    let program = command.get_program().to_string_lossy();
    let _ = writeln!(io::stderr(), "cannot start `{program}`: {error}");
    ExitCode::from(CANNOT_START)
}

/// Reads until the pipe closes, then ends the remaining process groups.
fn supervise() -> ExitCode {
    // A supervisor that signals can end is better than none.
    let _ = ignore_signals();
    let mut groups = ProcessGroups::default();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        match line.split_once(' ').map(|(word, id)| (word, id.parse())) {
            Some(("add", Ok(id))) => groups.add(id),
            Some(("remove", Ok(id))) => groups.remove(id),
            _ => {}
        }
    }
    groups.terminate();
    ExitCode::SUCCESS
}

/// Installs handlers for the signals that would end this process. It ends with the pipe instead.
fn ignore_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _inside = runtime.enter();
    // A handler stays installed for the lifetime of the process.
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
    ] {
        let _ = signal(kind)?;
    }
    Ok(())
}

/// The time that processes have to end after SIGTERM.
const GRACE_PERIOD: Duration = Duration::from_millis(900);
/// The interval of checks whether processes have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Process groups, each with the start time of its leader if that is known.
#[derive(Debug, Default)]
pub(super) struct ProcessGroups(BTreeMap<i32, Option<u64>>);

impl ProcessGroups {
    pub(super) fn add(&mut self, id: i32) {
        self.0.insert(id, start_time(id));
    }

    pub(super) fn remove(&mut self, id: i32) {
        self.0.remove(&id);
    }

    /// Ends all groups: with SIGTERM, and after a grace period with SIGKILL.
    pub(super) fn terminate(self) {
        let registered = self.0.into_iter();
        let registered = registered.filter(|(id, started)| is_same_group(*id, *started));
        let mut alive: Vec<_> = registered.filter_map(|(id, _)| Pid::from_raw(id)).collect();
        alive.retain(|group| kill_process_group(*group, Signal::TERM).is_ok());
        let started_at = Instant::now();
        while !alive.is_empty() && started_at.elapsed() < GRACE_PERIOD {
            sleep(POLL_INTERVAL);
            // An unused id may be reused, so a group that has ended is not checked again.
            alive.retain(|group| test_kill_process_group(*group).is_ok());
        }
        for group in alive {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Returns whether an id still belongs to the registered group.
///
/// A process id is not reused while a group has it. So a process with this id and another start time shows that the
/// group is gone.
fn is_same_group(id: i32, started: Option<u64>) -> bool {
    match start_time(id) {
        None => true,
        now => now == started,
    }
}

/// Returns the start time of a process in kernel ticks; `None` if there is no such process or no `/proc`.
fn start_time(id: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The program name is in parentheses and may contain some. The start time is field 22.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::{CommandExt as _, ExitStatusExt as _},
        process::{Child, Command},
    };

    use super::*;

    fn sleeping_process() -> (Child, i32) {
        let mut command = Command::new("sleep");
        let child = command.arg("1000").process_group(0).spawn().unwrap();
        let id = child.id().try_into().unwrap();
        (child, id)
    }

    #[test]
    fn remaining_groups_are_terminated() {
        let ((mut left, left_id), (mut removed, removed_id)) =
            (sleeping_process(), sleeping_process());
        let mut groups = ProcessGroups::default();
        groups.add(left_id);
        groups.add(removed_id);
        groups.remove(removed_id);

        // Without the wait, the child would be a zombie, which still counts as a member of its group.
        let waiting = std::thread::spawn(move || left.wait().unwrap());
        groups.terminate();

        assert_eq!(waiting.join().unwrap().signal(), Some(15));
        assert!(removed.try_wait().unwrap().is_none());
        removed.kill().unwrap();
        removed.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_reused_process_id_is_not_signaled() {
        let (mut other, id) = sleeping_process();
        let started = start_time(id).unwrap();

        ProcessGroups(BTreeMap::from([(id, Some(started - 1))])).terminate();
        ProcessGroups(BTreeMap::from([(id, None)])).terminate();

        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
