//! What children do: this test binary itself, told by an environment variable which one to be.
//!
//! Each connects to the test's [`Witness`] once it is ready and holds that connection for as long as it lives, so that its
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

use crate::child_servers;

const ROLE: &str = "TURNBUCKLE_TEST_ROLE";
const WITNESS: &str = "TURNBUCKLE_TEST_WITNESS";

/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A child of the given role, which reports to the witness.
pub(crate) fn child(role: &str, witness: &Witness) -> ServerCommand {
    ServerCommand::new(env::current_exe().unwrap())
        .args(["--exact", "child_roles::be_a_child", "--nocapture"])
        .env(ROLE, role)
        .env(WITNESS, &witness.path)
}

/// Where children say that they live.
pub(crate) struct Witness {
    path: PathBuf,
    listener: UnixListener,
}

impl Witness {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnbuckle-{}-{number}.sock", process::id());
        let path = env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        Self { path, listener }
    }

    /// Waits for the next child that is ready.
    pub(crate) async fn next(&self) -> Life {
        let (stream, _) = timeout(LONG, self.listener.accept())
            .await
            .unwrap()
            .unwrap();
        Life(stream)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A process that lives.
pub(crate) struct Life(UnixStream);

impl Life {
    /// Waits for its death.
    pub(crate) async fn ends(mut self) {
        let mut byte = [0];
        let end = timeout(LONG, self.0.read(&mut byte)).await.unwrap();
        // One that dies before it reads is a reset.
        assert!(matches!(end, Ok(0) | Err(_)));
    }

    pub(crate) fn is_over(&self) -> bool {
        let mut byte = [0];
        matches!(self.0.try_read(&mut byte), Ok(0))
    }
}

#[test]
fn be_a_child() {
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
            let _life = live();
            read_all();
        }
        "deaf" => runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate()).unwrap();
            let _life = live();
            terminate.recv().await;
            process::exit(7);
        }),
        "stubborn" => {
            let _handled = signal(SignalKind::terminate()).unwrap();
            stay();
        }
        "parent" => {
            start("stubborn", |_| {});
            let _life = live();
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
            child_servers::be(&role, &runtime),
            "nobody knows how to be {role:?}"
        ),
    }
    process::exit(0);
}

/// Says that this process is ready.
pub(crate) fn live() -> BlockingStream {
    BlockingStream::connect(env::var_os(WITNESS).unwrap()).unwrap()
}

/// Lives for as long as the test does.
pub(crate) fn stay() {
    let _ = live().read(&mut [0]);
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
        .args(["--exact", "child_roles::be_a_child", "--nocapture"])
        .env(ROLE, role);
    with(&mut command);
    command.spawn().unwrap();
}
