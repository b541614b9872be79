//! What children do: this test binary itself, told by an environment variable which one to be.
//!
//! Each connects to the test's [`ProcessMonitor`] once it is ready and holds that connection for as long as it lives, so that its
//! death can be waited for; nobody's process number is needed, and nobody outlives the test.

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

/// Longer than anything here takes.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A child of the given role, which reports to the witness.
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

/// Where children say that they live.
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

/// A process that lives.
pub(crate) struct RunningProcess(UnixStream);

impl RunningProcess {
    /// Waits for its death.
    pub(crate) async fn wait_for_exit(mut self) {
        let mut byte = [0];
        let end = timeout(TEST_TIMEOUT, self.0.read(&mut byte)).await.unwrap();
        // One that dies before it reads is a reset.
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
            "nobody knows how to be {role:?}"
        ),
    }
    process::exit(0);
}

/// Says that this process is ready.
pub(crate) fn report_ready() -> BlockingStream {
    BlockingStream::connect(env::var_os(WITNESS).unwrap()).unwrap()
}

/// Lives for as long as the test does.
pub(crate) fn run_until_test_ends() {
    let _ = report_ready().read(&mut [0]);
}

pub(crate) fn read_all() {
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
}

#[expect(
    clippy::zombie_processes,
    reason = "a parent that does not care is what is tested"
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
