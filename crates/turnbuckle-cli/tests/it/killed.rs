//! What becomes of the programs that the binary started when it is ended by a signal, whatever the signal.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::stage::Stage;

/// How long a test waits for an event before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary with a program that it started, which is two processes, and the pipe that both of them hold.
struct Run {
    binary: Child,
    pipe: BufReader<File>,
    _stage: Stage,
}

impl Run {
    /// Starts the binary, and waits until both processes are there and have got its first message. `first` is what they do
    /// before anything else.
    fn start(first: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let stage = Stage::new();
        let path = stage.path().join("pipe");
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let script = format!(
            "{first} exec 3>pipe; sleep 1000 & read -r message; echo ready >&3; sleep 1000"
        );
        let mut command = stage.command(&["ping", "--timeout", "1000s", "--", "sh", "-c", &script]);
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
            _stage: stage,
        }
    }

    fn signal(&self, name: &str) {
        send(name, self.binary.id());
    }

    /// Waits until nobody holds the pipe any more.
    fn assert_programs_end(mut self) {
        self.binary.wait().unwrap();
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            let mut rest = String::new();
            self.pipe.read_to_string(&mut rest).unwrap();
            let _ = done.send(rest);
        });
        let rest = ended.recv_timeout(PATIENCE);
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
fn every_signal_that_ends_the_binary_ends_its_programs() {
    for signal in ["HUP", "INT", "QUIT", "TERM", "KILL"] {
        // Who runs the tests without a terminal may have it ignored, and then so does the binary.
        if signal == "HUP" && is_hangup_ignored() {
            continue;
        }
        let run = Run::start("", |_| {});

        run.signal(signal);

        run.assert_programs_end();
    }
}

#[test]
fn programs_that_ignore_sigterm_are_killed() {
    let run = Run::start("trap '' TERM;", |_| {});

    run.signal("KILL");

    run.assert_programs_end();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::PathBuf;
    use std::time::Instant;

    use super::*;

    /// Waits until something is there.
    fn poll<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "there is no {what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the processes that a process started.
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

    /// Waits until a process has set its handlers.
    fn wait_until_ready(process: u32) {
        for signal in [2, 3, 15] {
            poll("handler", || catches(process, signal).then_some(()));
        }
    }

    /// Says whether a process has a handler for a signal.
    fn catches(process: u32, signal: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let mut lines = status.lines();
        let caught = lines.find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        caught & (1 << (signal - 1)) != 0
    }

    #[test]
    fn the_supervisor_outlives_signals_that_others_do_not() {
        let run = Run::start("", |_| {});
        let supervisor = supervisor_of(run.binary.id());
        wait_until_ready(supervisor);

        for signal in ["HUP", "INT", "QUIT", "TERM"] {
            send(signal, supervisor);
        }
        run.signal("KILL");

        run.assert_programs_end();
    }

    #[test]
    fn the_supervisor_is_out_of_the_way() {
        let mut run = Run::start("", |command| {
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
        let stage = Stage::new();
        let mut command = stage.command(&["call", "SOCKET", "sleep", "--verbose"]);
        let mut binary = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut talk = BufReader::new(binary.stderr.take().unwrap()).lines();
        assert!(talk.any(|line| line.unwrap().contains("tools/call")));

        assert!(children(binary.id()).is_empty());

        send("TERM", binary.id());
        binary.wait().unwrap();
    }

    #[test]
    fn a_hangup_that_is_to_be_ignored_is_not_caught() {
        for (first, caught) in [("", !is_hangup_ignored()), ("trap '' HUP;", false)] {
            let stage = Stage::new();
            let binary = stage.command(&["call", "SOCKET", "sleep", "--verbose"]);
            let mut command = Command::new("sh");
            command
                .args(["-c", &format!("{first} exec \"$0\" \"$@\"")])
                .arg(binary.get_program())
                .args(binary.get_args())
                .current_dir(stage.path())
                .env("HOME", stage.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            let mut binary = command.spawn().unwrap();
            let mut talk = BufReader::new(binary.stderr.take().unwrap()).lines();
            assert!(talk.any(|line| line.unwrap().contains("tools/call")));

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
