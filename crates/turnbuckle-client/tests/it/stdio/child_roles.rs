//! Child processes: this test binary, with a role in an environment variable.
//!
//! Each child connects to the [`ProcessMonitor`] of the test when it is ready, and holds that connection until it exits, so that a test
//! can wait for its exit without a process id, and no child outlives the test.

use std::{
    env,
    io::{self, Read, Write},
    os::unix::{net::UnixStream as BlockingStream, process::CommandExt},
    path::PathBuf,
    process::{self, Command},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use turnbuckle_client::stdio::ServerCommand;

use crate::stdio::child_servers;

const ROLE: &str = "TURNBUCKLE_TEST_ROLE";
const WITNESS: &str = "TURNBUCKLE_TEST_WITNESS";

/// Longer than any test takes.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the command of a child with this role, which reports to the monitor.
pub(crate) fn child(role: &str, monitor: &ProcessMonitor) -> ServerCommand {
    ServerCommand::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "stdio::child_roles::run_child_role",
            "--nocapture",
        ])
        .env(ROLE, role)
        .env(WITNESS, &monitor.path)
}

/// Accepts the connections of children.
pub(crate) struct ProcessMonitor {
    path: PathBuf,
    listener: UnixListener,
}

impl ProcessMonitor {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnbuckle-{}-{number}.sock", process::id());
        let path = env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        Self { path, listener }
    }

    /// Waits for the next child that is ready.
    pub(crate) async fn next(&self) -> RunningProcess {
        let (stream, _) = timeout(TEST_TIMEOUT, self.listener.accept())
            .await
            .unwrap()
            .unwrap();
        RunningProcess(stream)
    }
}

impl Drop for ProcessMonitor {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A running child process.
pub(crate) struct RunningProcess(UnixStream);

impl RunningProcess {
    /// Waits for its exit.
    pub(crate) async fn wait_for_exit(mut self) {
        let mut byte = [0];
        let end = timeout(TEST_TIMEOUT, self.0.read(&mut byte)).await.unwrap();
        // A child that exits before it reads resets the connection.
        assert!(matches!(end, Ok(0) | Err(_)));
    }

    pub(crate) fn has_exited(&self) -> bool {
        let mut byte = [0];
        matches!(self.0.try_read(&mut byte), Ok(0))
    }
}

#[test]
fn run_child_role() {
    let Ok(role) = env::var(ROLE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    match &*role {
        "orderly" => {
            let _connection = report_ready();
            read_all();
        }
        "deaf" => runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate()).unwrap();
            let _connection = report_ready();
            terminate.recv().await;
            process::exit(7);
        }),
        "stubborn" => {
            let _handled = signal(SignalKind::terminate()).unwrap();
            run_until_test_ends();
        }
        "parent" => {
            start("stubborn", |_| {});
            let _connection = report_ready();
            read_all();
        }
        "forking" => {
            start("stubborn", |_| {});
            read_all();
            println!("written before the end");
            process::exit(0);
        }
        "abandoning" => {
            start("stubborn", |command| {
                command.process_group(0);
            });
            read_all();
            println!("written before the end");
            eprintln!("left alone");
            process::exit(0);
        }
        "failing" => {
            eprintln!("no configuration\nat all");
            process::exit(3);
        }
        "crashing" => process::abort(),
        "loud" => {
            for number in 0..160_000 {
                eprintln!("{number:06} {}", "x".repeat(57));
            }
        }
        _ => assert!(
            child_servers::run_server_role(&role, &runtime),
            "unknown role {role:?}"
        ),
    }
    process::exit(0);
}

/// Reports that this process is ready.
pub(crate) fn report_ready() -> BlockingStream {
    BlockingStream::connect(env::var_os(WITNESS).unwrap()).unwrap()
}

/// Runs until the test ends.
pub(crate) fn run_until_test_ends() {
    let _ = report_ready().read(&mut [0]);
}

pub(crate) fn read_all() {
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
}

#[expect(
    clippy::zombie_processes,
    reason = "the child is not awaited on purpose"
)]
pub(crate) fn start(role: &str, with: impl FnOnce(&mut Command)) {
    let _ = io::stdout().flush();
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "stdio::child_roles::run_child_role",
            "--nocapture",
        ])
        .env(ROLE, role);
    with(&mut command);
    command.spawn().unwrap();
}
