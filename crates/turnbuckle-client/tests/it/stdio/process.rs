//! Child processes: start, end, and output.

use std::{
    ffi::OsString,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use turnbuckle_client::stdio::{
    ExitReason, ProcessObserver, ServerCommand, SpawnError, StderrMode,
};
use turnbuckle_spec_coverage::req;

use crate::stdio::child_roles::{ProcessMonitor, TEST_TIMEOUT, child};

/// A timeout that even a busy machine does not reach.
const LONG_TIMEOUT: Duration = TEST_TIMEOUT;
/// A timeout that tests can wait for.
const SHORT_TIMEOUT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn closing_stdin_ends_a_well_behaved_child() {
    req!("stdio.shutdown.client-close");
    let monitor = ProcessMonitor::new();
    let started = child("orderly", &monitor)
        .kill_timeout(LONG_TIMEOUT)
        .start()
        .unwrap();
    let running_process = monitor.next().await;
    assert_eq!(started.process.exit(), None);

    drop(started.input);
    let exit = started.process.end().await;

    assert_eq!(exit, ExitReason::Code(0));
    assert_eq!(started.process.exit(), Some(ExitReason::Code(0)));
    running_process.wait_for_exit().await;
}

#[tokio::test]
async fn a_child_that_ignores_closed_stdin_gets_sigterm() {
    req!("stdio.shutdown.client-wait-kill");
    let monitor = ProcessMonitor::new();
    let second = Duration::from_secs(1);
    let started = child("deaf", &monitor)
        .kill_timeout(second)
        .start()
        .unwrap();
    let running_process = monitor.next().await;

    drop(started.input);
    let exit = started.process.end().await;

    assert_eq!(exit, ExitReason::Code(7), "it could tidy up");
    running_process.wait_for_exit().await;
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed() {
    req!("stdio.shutdown.client-wait-kill");
    let monitor = ProcessMonitor::new();
    let started = child("stubborn", &monitor)
        .kill_timeout(SHORT_TIMEOUT)
        .start()
        .unwrap();
    let running_process = monitor.next().await;
    let started_at = Instant::now();

    drop(started.input);
    let exit = started.process.end().await;

    assert_eq!(exit, ExitReason::Signal(9));
    assert!(
        started_at.elapsed() >= 2 * SHORT_TIMEOUT,
        "it had its chances"
    );
    running_process.wait_for_exit().await;
}

#[tokio::test]
async fn grandchildren_end_with_the_child() {
    let monitor = ProcessMonitor::new();
    let started = child("parent", &monitor)
        .kill_timeout(SHORT_TIMEOUT)
        .start()
        .unwrap();
    let processes = [monitor.next().await, monitor.next().await];

    drop(started.input);
    started.process.end().await;

    for running_process in processes {
        running_process.wait_for_exit().await;
    }
}

#[tokio::test]
async fn a_child_that_forks_and_exits_leaves_no_process() {
    let monitor = ProcessMonitor::new();
    let started = child("forking", &monitor)
        .kill_timeout(SHORT_TIMEOUT)
        .start()
        .unwrap();
    let running_process = monitor.next().await;

    drop(started.input);
    let died = started.process.wait().await;
    started.process.end().await;

    assert_eq!(died.exit, ExitReason::Code(0));
    running_process.wait_for_exit().await;
}

#[tokio::test]
async fn output_ends_with_the_child_even_if_others_hold_the_pipe() {
    let monitor = ProcessMonitor::new();
    let mut started = child("abandoning", &monitor).start().unwrap();
    let running_process = monitor.next().await;
    drop(started.input);

    let mut text = String::new();
    timeout(TEST_TIMEOUT, started.output.read_to_string(&mut text))
        .await
        .expect("it ends")
        .unwrap();
    let died = started.process.wait().await;

    assert!(text.ends_with("written before the end\n"), "{text:?}");
    assert_eq!(died.stderr_tail, "left alone");
    assert!(
        !running_process.has_exited(),
        "a process outside the group is not killed"
    );
}

#[tokio::test]
async fn dropping_the_process_shuts_it_down_in_order() {
    let monitor = ProcessMonitor::new();
    let started = child("parent", &monitor)
        .kill_timeout(SHORT_TIMEOUT)
        .start()
        .unwrap();
    let processes = [monitor.next().await, monitor.next().await];

    drop(started);

    for running_process in processes {
        running_process.wait_for_exit().await;
    }
}

#[test]
fn a_runtime_that_ends_leaves_no_process() {
    let first = tokio::runtime::Runtime::new().unwrap();
    let second = tokio::runtime::Runtime::new().unwrap();
    let monitor = second.block_on(async { ProcessMonitor::new() });
    let (started, running_process) = first.block_on(async {
        let started = child("stubborn", &monitor)
            .kill_timeout(LONG_TIMEOUT)
            .start()
            .unwrap();
        (started, second.spawn(async move { monitor.next().await }))
    });
    let running_process = second.block_on(running_process).unwrap();

    drop(first);

    second.block_on(running_process.wait_for_exit());
    assert_eq!(
        second.block_on(started.process.wait()).exit,
        ExitReason::Unknown
    );
}

#[test]
fn dropping_the_process_without_a_runtime_kills_it() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (started, running_process) = runtime.block_on(async {
        let monitor = ProcessMonitor::new();
        let started = child("stubborn", &monitor)
            .kill_timeout(LONG_TIMEOUT)
            .start()
            .unwrap();
        (started, monitor.next().await)
    });

    // The runtime does not run any more.
    drop(started);

    runtime.block_on(running_process.wait_for_exit());
}

#[tokio::test]
async fn a_failed_child_is_reported_with_its_exit_status_and_stderr() {
    req!("stdio.stderr.client-handling");
    let monitor = ProcessMonitor::new();
    let started = child("failing", &monitor).start().unwrap();

    let died = started.process.wait().await;

    assert_eq!(died.exit, ExitReason::Code(3));
    assert_eq!(
        died.to_string(),
        "the server process exited with code 3; last lines of stderr:\nno configuration\nat all"
    );
    assert_eq!(started.process.stderr_tail(), "no configuration\nat all\n");
}

#[tokio::test]
async fn a_signal_that_killed_the_child_is_reported() {
    let monitor = ProcessMonitor::new();
    let started = child("crashing", &monitor).start().unwrap();

    let died = started.process.wait().await;

    assert_eq!(died.exit, ExitReason::Signal(6));
}

#[tokio::test]
async fn stderr_never_blocks_the_child_and_only_its_tail_is_stored() {
    req!("stdio.stderr.not-error");
    let monitor = ProcessMonitor::new();
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let recorded = lines.clone();
    let started = child("loud", &monitor)
        .on_stderr(move |line| recorded.lock().unwrap().push(line[..6].to_owned()))
        .start()
        .unwrap();

    let died = timeout(TEST_TIMEOUT, started.process.wait()).await.unwrap();

    assert_eq!(died.exit, ExitReason::Code(0));
    let tail = started.process.stderr_tail();
    assert_eq!(tail.len(), 64 * 1024);
    assert!(tail.ends_with(&format!("159999 {}\n", "x".repeat(57))));
    let lines = lines.lock().unwrap();
    let expected = (0..160_000).map(|number| format!("{number:06}"));
    assert!(lines.iter().cloned().eq(expected), "every line was shown");
}

#[tokio::test]
async fn a_panic_in_the_stderr_callback_is_caught() {
    let monitor = ProcessMonitor::new();
    let first = std::sync::atomic::AtomicBool::new(true);
    let started = child("loud", &monitor)
        .on_stderr(move |_| {
            let first = first.swap(false, std::sync::atomic::Ordering::Relaxed);
            assert!(!first, "the first line is too much");
        })
        .start()
        .unwrap();

    let died = timeout(TEST_TIMEOUT, started.process.wait()).await.unwrap();

    assert_eq!(died.exit, ExitReason::Code(0));
    assert_eq!(started.process.stderr_tail().len(), 64 * 1024);
}

#[tokio::test]
async fn discarded_stderr_is_not_stored() {
    let monitor = ProcessMonitor::new();
    let started = child("failing", &monitor)
        .stderr(StderrMode::Discarded)
        .start()
        .unwrap();

    let died = started.process.wait().await;

    assert_eq!(died.to_string(), "the server process exited with code 3");
}

#[tokio::test]
async fn arguments_environment_and_directory_are_passed_unchanged() {
    let mut started = ServerCommand::new("/bin/sh")
        .args([
            "-c",
            "printf '%s|' \"$0\" \"$1\" \"$A\" \"$B\" \"${HOME-none}\" \"$PWD\"",
        ])
        .args(["a b", "$(echo no)"])
        .env("LOST", "1")
        .env_clear()
        .envs([("A", "1"), ("B", "x=y")])
        .current_dir("/")
        .start()
        .unwrap();

    let mut text = String::new();
    started.output.read_to_string(&mut text).await.unwrap();

    assert_eq!(text, "a b|$(echo no)|1|x=y|none|/|");
}

/// Returns the names of the variables of a child, without those of the test.
async fn variables_of(child: ServerCommand) -> Vec<String> {
    let mut started = child.args(["-c", "env"]).start().unwrap();
    let mut text = String::new();
    started.output.read_to_string(&mut text).await.unwrap();
    let names = text.lines().filter_map(|line| line.split_once('='));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[tokio::test]
async fn a_child_gets_an_allow_list_of_variables_and_those_that_are_set() {
    const SAFE: &[&str] = &[
        "HOME",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "USER",
        "LANG",
        "LANGUAGE",
        "TMPDIR",
        "TZ",
        "XDG_RUNTIME_DIR",
    ];
    // The shell sets these itself.
    const OF_SHELL: &[&str] = &["PWD", "OLDPWD", "SHLVL", "_"];
    // cargo sets it for every test; it represents a secret in the environment.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());

    let names = variables_of(ServerCommand::new("/bin/sh").env("KEY", "1")).await;

    assert!(names.contains(&"PATH".to_owned()), "{names:?}");
    assert!(names.contains(&"KEY".to_owned()), "{names:?}");
    let allowed = |name: &str| {
        name == "KEY" || name.starts_with("LC_") || SAFE.contains(&name) || OF_SHELL.contains(&name)
    };
    let others: Vec<_> = names.iter().filter(|name| !allowed(name)).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test]
async fn a_child_can_inherit_all_variables() {
    let child = ServerCommand::new("/bin/sh")
        .env("KEY", "1")
        .inherit_all_env();

    let names = variables_of(child).await;

    for name in ["PATH", "KEY", "CARGO_MANIFEST_DIR"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
}

#[tokio::test]
async fn a_program_is_looked_up_in_the_path_of_the_child() {
    let mut started = ServerCommand::new("sh")
        .args(["-c", "echo found"])
        .start()
        .unwrap();
    let mut text = String::new();
    started.output.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "found\n");

    let elsewhere = ServerCommand::new("sh").env("PATH", "/no/such/folder");
    assert!(matches!(
        elsewhere.start().unwrap_err(),
        SpawnError::NotFound { .. }
    ));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let missing = ServerCommand::new("no-such-program-at-all")
        .start()
        .unwrap_err();
    let no_folder = ServerCommand::new("sh")
        .current_dir("/no/such")
        .start()
        .unwrap_err();
    let folder = ServerCommand::new("/tmp/").start().unwrap_err();
    let broken = ServerCommand::new("sh").arg("a\0b").start().unwrap_err();

    assert!(
        matches!(&missing, SpawnError::NotFound { program } if program == "no-such-program-at-all")
    );
    assert!(missing.to_string().contains("`no-such-program-at-all`"));
    assert!(matches!(no_folder, SpawnError::NoFolder { .. }));
    assert!(matches!(folder, SpawnError::Refused { .. }));
    assert!(matches!(broken, SpawnError::Refused { .. }));
}

#[tokio::test]
async fn a_script_with_a_missing_interpreter_has_its_own_error() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("turnbuckle-{}.script", std::process::id()));
    std::fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();

    let error = ServerCommand::new(&path).start().unwrap_err();

    std::fs::remove_file(&path).unwrap();
    assert!(matches!(error, SpawnError::NoInterpreter { .. }), "{error}");
}

#[test]
fn arguments_and_variables_are_not_printed() {
    let child = ServerCommand::new("server")
        .arg("--token=s3cret")
        .env("TOKEN", "s3cret");

    let printed = format!("{child:?}");

    assert!(
        printed.contains("server") && !printed.contains("s3cret"),
        "{printed}"
    );
}

/// Records the events of a process.
#[derive(Default)]
struct EventRecorder(Mutex<Vec<(&'static str, u32)>>);

impl EventRecorder {
    fn record(&self, what: &'static str, id: u32) {
        self.0.lock().unwrap().push((what, id));
    }
}

impl ProcessObserver for EventRecorder {
    fn starting(&self) {
        self.record("starting", 0);
    }

    fn started(&self, id: u32) {
        self.record("started", id);
    }

    fn ended(&self, id: u32) {
        self.record("ended", id);
    }
}

#[tokio::test]
async fn an_observer_sees_the_start_and_the_end_of_the_process_group() {
    let (monitor, journal) = (ProcessMonitor::new(), Arc::<EventRecorder>::default());
    let child = child("parent", &monitor).kill_timeout(SHORT_TIMEOUT);
    let started = child.observer(journal.clone()).start().unwrap();
    let processes = [monitor.next().await, monitor.next().await];
    let id = started.process.id().unwrap();
    assert_eq!(
        *journal.0.lock().unwrap(),
        [("starting", 0), ("started", id)]
    );

    drop(started.input);
    started.process.end().await;
    for running_process in processes {
        running_process.wait_for_exit().await;
    }
    // The reaper task ends right after it reports the exit.
    while journal.0.lock().unwrap().len() < 3 {
        tokio::task::yield_now().await;
    }

    assert_eq!(journal.0.lock().unwrap()[2], ("ended", id));
}

/// Starts programs through a shell, which waits for a line.
struct ShellLauncher;

impl ProcessObserver for ShellLauncher {
    fn launcher(&self) -> Option<Vec<OsString>> {
        let words = ["/bin/sh", "-c", "read -r _ && exec \"$@\"", "launcher"];
        Some(words.map(Into::into).to_vec())
    }

    fn started(&self, _: u32) {}

    fn ended(&self, _: u32) {}
}

#[tokio::test]
async fn a_launcher_is_released_and_its_program_gets_the_rest_of_the_input() {
    let child = ServerCommand::new("cat").arg("-u");
    let mut started = child.observer(Arc::new(ShellLauncher)).start().unwrap();

    started.input.write_all(b"message\n").await.unwrap();
    drop(started.input);
    let mut text = String::new();
    started.output.read_to_string(&mut text).await.unwrap();

    assert_eq!(text, "message\n");
    assert_eq!(started.process.wait().await.exit, ExitReason::Code(0));
}

#[tokio::test]
async fn a_missing_program_is_named_although_a_launcher_would_start() {
    for (program, path) in [
        ("no-such-program-at-all", "/bin:/usr/bin"),
        ("/no/such/program", "/bin"),
        ("sh", "/no/such/folder"),
    ] {
        let child = ServerCommand::new(program).env("PATH", path);

        let error = child.observer(Arc::new(ShellLauncher)).start().unwrap_err();

        assert!(
            matches!(&error, SpawnError::NotFound { program: named } if named == program),
            "{error}"
        );
    }
}
