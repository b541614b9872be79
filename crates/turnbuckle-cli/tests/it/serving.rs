//! A server of the real binary, in a folder of its own.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::Stage;

/// A server that runs until it is ended or dropped.
pub(crate) struct Serving {
    child: Child,
    /// The line it printed.
    pub(crate) told: String,
}

impl Serving {
    /// Starts it and waits until it says where it is.
    pub(crate) fn start(stage: &Stage, words: &[&str]) -> Self {
        let words = [&["serve"], words].concat();
        Self::spawn(stage.command(&words))
    }

    /// Starts it on a free port, with limits that a shell sets first.
    pub(crate) fn limited(stage: &Stage, ulimit: &str) -> Self {
        let own = stage.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &format!("{ulimit} && exec \"$0\" \"$@\"")])
            .arg(own.get_program())
            .args(own.get_args())
            .env_clear();
        for (name, value) in own.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        if let Some(folder) = own.get_current_dir() {
            command.current_dir(folder);
        }
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut told).unwrap();
        Self {
            child,
            told: told.trim_end().to_owned(),
        }
    }

    /// Starts it on a free port.
    pub(crate) fn on_a_port(stage: &Stage) -> Self {
        Self::start(stage, &["--listen", "127.0.0.1:0"])
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has ended; returns how, and what it said on stderr.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (status, said)
    }

    /// Asks it to end, and returns all it said on stderr.
    pub(crate) fn end(self) -> String {
        self.signal(Signal::TERM);
        let (status, said) = self.wait();
        assert!(status.success(), "{status}: {said}");
        said
    }

    /// Calls a tool by the real binary, and returns the structured result.
    pub(crate) fn call(&self, stage: &Stage, words: &[&str]) -> Value {
        let words = [&["call", "--json", &self.told], words].concat();
        let output = stage.command(&words).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", stage.seen(&output)));
        document["structuredContent"].clone()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a plain `GET`, and returns the whole answer.
pub(crate) fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
