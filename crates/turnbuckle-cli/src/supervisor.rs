//! Ends the programs that this process started, should it be killed.
//!
//! Nothing can run in a process that gets SIGKILL. So a second process of this binary, the supervisor, holds the reading end of a
//! pipe whose only writing end is ours: [`Supervisor`] writes into it which process groups are alive, and when it closes,
//! for whatever reason, [`run`] ends those that are left. The supervisor is started with the first program, and ends with us.
//! Only a SIGKILL between the start of a program and the next system call, which registers it, leaves that program behind.
//!
//! A line of the pipe is `add GROUP` or `remove GROUP`.

mod groups;

use std::collections::BTreeSet;
use std::env;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use tokio::signal::unix::{SignalKind, signal};
use turnbuckle_client::stdio::ProcessObserver;

use self::groups::Groups;

/// The only word of the command line of a supervisor.
const SUPERVISE: &str = "supervise-children";

/// Tells the supervisor which process groups there are. One for the whole process.
#[derive(Debug, Default)]
pub(crate) struct Supervisor(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The supervisor and the writing end of its pipe, once it is needed.
    process: Option<Child>,
    groups: BTreeSet<u32>,
}

impl Supervisor {
    /// Has a process group ended when this process is gone.
    pub(crate) fn register(&self, group: u32) {
        self.update(|state| {
            state.groups.insert(group);
            state.tell(&format!("add {group}\n"))
        });
    }

    /// Leaves a process group alone from now on. To be called as soon as it is gone, since its number may be used again.
    pub(crate) fn unregister(&self, group: u32) {
        self.update(|state| {
            state.groups.remove(&group);
            state.tell(&format!("remove {group}\n"))
        });
    }

    /// Starts the supervisor if there is none, so that the first program does not run without it for long.
    pub(crate) fn prepare(&self) {
        self.update(|state| state.tell(""));
    }

    /// Without a supervisor everything works, except that programs outlive a process that is killed.
    fn update(&self, change: impl FnOnce(&mut State) -> io::Result<()>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = change(&mut state) {
            tracing::warn!(%error, "programs would outlive this process if it were killed");
        }
    }
}

impl ProcessObserver for Supervisor {
    fn starting(&self) {
        self.prepare();
    }

    fn started(&self, id: u32) {
        self.register(id);
    }

    fn ended(&self, id: u32) {
        self.unregister(id);
    }
}

impl State {
    /// Writes a line. Starts a supervisor if there is none, and registers all groups with it.
    fn tell(&mut self, line: &str) -> io::Result<()> {
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

/// Starts a supervisor.
///
/// It leads a process group of its own, so that Ctrl-C does not reach it, and holds neither our output nor our folder: who
/// reads from us sees the end when we are gone.
fn start() -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .arg(SUPERVISE)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()
}

/// Says whether this process was started as a supervisor.
pub(crate) fn is_supervisor() -> bool {
    let mut words = env::args_os().skip(1);
    words.next().is_some_and(|word| word == SUPERVISE) && words.next().is_none()
}

/// Is the supervisor: reads until the pipe closes, and then ends the process groups that are left.
pub(crate) fn run() -> ExitCode {
    // A supervisor that signals could end is better than none.
    let _ = outlive_signals();
    let mut groups = Groups::default();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        match line.split_once(' ').map(|(word, id)| (word, id.parse())) {
            Some(("add", Ok(id))) => groups.add(id),
            Some(("remove", Ok(id))) => groups.remove(id),
            _ => {}
        }
    }
    groups.end();
    ExitCode::SUCCESS
}

/// Takes the signals that would end this process, and does nothing about them: it ends with the pipe.
fn outlive_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _inside = runtime.enter();
    // A handler that is set once stays for as long as the process runs.
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
