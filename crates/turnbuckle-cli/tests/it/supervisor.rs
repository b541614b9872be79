//! Child programs end when the binary is ended by a signal, including SIGKILL.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::sandbox::Sandbox;

/// The time that a test waits for an event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The binary with a child program of two processes, and the pipe that both hold.
struct RunningCommand {
    binary: Child,
    pipe: BufReader<File>,
    _stage: Sandbox,
}

impl RunningCommand {
    /// Starts the binary, and waits until both processes run and have received its first message. The shell code
    /// `first` runs before everything else.
    fn start(first: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let sandbox = Sandbox::new();
        let path = sandbox.path().join("pipe");
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let script = format!(
            "{first} exec 3>pipe; sleep 1000 & read -r message; echo ready >&3; sleep 1000"
        );
        let mut command =
            sandbox.command(&["ping", "--timeout", "1000s", "--", "sh", "-c", &script]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        prepare(&mut command);
        let binary = command.spawn().unwrap();
        let mut pipe = BufReader::new(File::open(path).unwrap());
        let mut line = String::new();
        pipe.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self {
            binary,
            pipe,
            _stage: sandbox,
        }
    }

    fn signal(&self, name: &str) {
        send(name, self.binary.id());
    }

    /// Waits until no process holds the pipe.
    fn assert_programs_end(mut self) {
        self.binary.wait().unwrap();
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            let mut rest = String::new();
            self.pipe.read_to_string(&mut rest).unwrap();
            let _ = done.send(rest);
        });
        let rest = ended.recv_timeout(EVENT_TIMEOUT);
        assert_eq!(rest.as_deref(), Ok(""), "the programs are still there");
    }
}

fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0)
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill")
        .args([format!("-{signal}"), process.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

#[test]
fn every_terminating_signal_ends_the_child_programs() {
    for signal in ["HUP", "INT", "QUIT", "TERM", "KILL"] {
        // Without a terminal the tests may run with SIGHUP ignored, which the binary inherits.
        if signal == "HUP" && is_hangup_ignored() {
            continue;
        }
        let run = RunningCommand::start("", |_| {});

        run.signal(signal);

        run.assert_programs_end();
    }
}

#[test]
fn programs_that_ignore_sigterm_are_killed() {
    let run = RunningCommand::start("trap '' TERM;", |_| {});

    run.signal("KILL");

    run.assert_programs_end();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, path::PathBuf, time::Instant};

    use super::*;

    /// Polls until `look` returns a value.
    fn poll<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
        let started_at = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(started_at.elapsed() < EVENT_TIMEOUT, "there is no {what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the child processes of a process.
    fn children(process: u32) -> Vec<u32> {
        let file = format!("/proc/{process}/task/{process}/children");
        let listed = fs::read_to_string(file).unwrap();
        let ids = listed.split_whitespace();
        ids.map(|id| id.parse().unwrap()).collect()
    }

    fn supervisor_of(process: u32) -> u32 {
        poll("supervisor", || {
            children(process).into_iter().find(|child| {
                let words = fs::read_to_string(format!("/proc/{child}/cmdline"));
                words.is_ok_and(|words| words.ends_with("\0supervise-children\0"))
            })
        })
    }

    /// Waits until a process has installed its handlers.
    fn wait_until_ready(process: u32) {
        for signal in [2, 3, 15] {
            poll("handler", || catches(process, signal).then_some(()));
        }
    }

    /// Returns whether a process has a handler for a signal.
    fn catches(process: u32, signal: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let mut lines = status.lines();
        let caught = lines.find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        caught & (1 << (signal - 1)) != 0
    }

    #[test]
    fn the_supervisor_survives_terminating_signals() {
        let run = RunningCommand::start("", |_| {});
        let supervisor = supervisor_of(run.binary.id());
        wait_until_ready(supervisor);

        for signal in ["HUP", "INT", "QUIT", "TERM"] {
            send(signal, supervisor);
        }
        run.signal("KILL");

        run.assert_programs_end();
    }

    #[test]
    fn the_supervisor_holds_no_output_folder_or_process_group() {
        let mut run = RunningCommand::start("", |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        let supervisor = supervisor_of(run.binary.id());
        let link = |name: &str| fs::read_link(format!("/proc/{supervisor}/{name}")).unwrap();

        assert_eq!(link("fd/1"), PathBuf::from("/dev/null"));
        assert_eq!(link("fd/2"), PathBuf::from("/dev/null"));
        assert_eq!(link("cwd"), PathBuf::from("/"));
        let stat = fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1;
        let group = fields.split_whitespace().nth(2).unwrap();
        assert_eq!(group, supervisor.to_string(), "a process group of its own");

        run.signal("TERM");
        let mut rest = Vec::new();
        let mut stdout = run.binary.stdout.take().unwrap();
        stdout.read_to_end(&mut rest).unwrap();
        run.assert_programs_end();
        poll("end of the supervisor", || {
            (!fs::exists(format!("/proc/{supervisor}")).unwrap()).then_some(())
        });
    }

    #[test]
    fn without_a_program_there_is_no_supervisor() {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command(&["call", "SOCKET", "sleep", "--verbose"]);
        let mut binary = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(binary.stderr.take().unwrap()).lines();
        assert!(stderr.any(|line| line.unwrap().contains("tools/call")));

        assert!(children(binary.id()).is_empty());

        send("TERM", binary.id());
        binary.wait().unwrap();
    }

    #[test]
    fn an_ignored_hangup_stays_ignored() {
        for (first, caught) in [("", !is_hangup_ignored()), ("trap '' HUP;", false)] {
            let sandbox = Sandbox::new();
            let binary = sandbox.command(&["call", "SOCKET", "sleep", "--verbose"]);
            let mut command = Command::new("sh");
            command
                .args(["-c", &format!("{first} exec \"$0\" \"$@\"")])
                .arg(binary.get_program())
                .args(binary.get_args())
                .current_dir(sandbox.path())
                .env("HOME", sandbox.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            let mut binary = command.spawn().unwrap();
            let mut stderr = BufReader::new(binary.stderr.take().unwrap()).lines();
            assert!(stderr.any(|line| line.unwrap().contains("tools/call")));

            wait_until_ready(binary.id());
            if caught {
                poll("handler of SIGHUP", || {
                    catches(binary.id(), 1).then_some(())
                });
            }
            assert_eq!(catches(binary.id(), 1), caught);

            send("TERM", binary.id());
            assert_eq!(binary.wait().unwrap().code(), Some(2));
        }
    }
}

/// SIGKILL at any moment of the start of a program leaves no process.
#[cfg(target_os = "linux")]
mod killed {
    use std::{fs, io::Write as _, path::Path, time::Instant};

    use super::*;

    /// Starts the binary with a program that never ends. The command lines of the binary and of its descendants contain
    /// the folder of the sandbox; only that of the supervisor does not.
    fn start(sandbox: &Sandbox) -> Child {
        let script = format!("sleep 1000; : {}", sandbox.path().display());
        let words = ["ping", "--timeout", "1000s", "--", "sh", "-c", &script];
        let mut command = sandbox.command(&words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Returns the processes with a text in their command line.
    fn processes_with(text: &str) -> Vec<u32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter(|id| {
            let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(text)
        })
        .collect()
    }

    /// Kills the binary, and waits until its descendants have ended.
    fn assert_kill_leaves_nothing(mut binary: Child, folder: &Path) {
        binary.kill().unwrap();
        binary.wait().unwrap();
        let started_at = Instant::now();
        loop {
            let left = processes_with(folder.to_str().unwrap());
            if left.is_empty() {
                return;
            }
            assert!(started_at.elapsed() < EVENT_TIMEOUT, "left: {left:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn right_after_the_start_of_the_program_it_is_not_left() {
        for _ in 0..30 {
            let sandbox = Sandbox::new();
            let binary = start(&sandbox);
            let file = format!("/proc/{0}/task/{0}/children", binary.id());
            // The supervisor is the first child, the program the second.
            let started_at = Instant::now();
            while fs::read_to_string(&file)
                .unwrap()
                .split_whitespace()
                .count()
                < 2
            {
                assert!(started_at.elapsed() < EVENT_TIMEOUT, "no program");
            }

            assert_kill_leaves_nothing(binary, sandbox.path());
        }
    }

    #[test]
    fn at_random_moments_nothing_is_left() {
        for round in 0..30 {
            let sandbox = Sandbox::new();
            let binary = start(&sandbox);
            thread::sleep(Duration::from_micros(round * 1500));

            assert_kill_leaves_nothing(binary, sandbox.path());
        }
    }

    #[test]
    fn a_launcher_without_a_byte_does_not_start_its_program() {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command(&["launch-child", "touch", "made"]);

        let output = command.stdin(Stdio::null()).output().unwrap();

        assert!(output.status.success(), "{output:?}");
        assert!(!sandbox.path().join("made").exists());
    }

    #[test]
    fn a_launcher_reads_one_byte_and_names_a_program_that_cannot_start() {
        let sandbox = Sandbox::new();
        let launch = |program: &str| {
            let mut command = sandbox.command(&["launch-child", program]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut launcher = command.stderr(Stdio::piped()).spawn().unwrap();
            let mut input = launcher.stdin.take().unwrap();
            input.write_all(b"\nmessage\n").unwrap();
            drop(input);
            launcher.wait_with_output().unwrap()
        };

        assert_eq!(launch("cat").stdout, b"message\n");
        let failed = launch("/no/such/program");
        assert_eq!(failed.status.code(), Some(127));
        assert_eq!(
            String::from_utf8(failed.stderr).unwrap(),
            "cannot start `/no/such/program`: No such file or directory (os error 2)\n"
        );
    }
}
