//! A `turnbuckle serve` or `turnbuckle bridge` process in a sandbox.

use std::{
    fs,
    io::{BufRead, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::sandbox::Sandbox;

/// The time that a test waits for a line on stderr.
const LINE_TIMEOUT: Duration = Duration::from_secs(60);

/// A server that runs until it is stopped or dropped.
pub(crate) struct ServeProcess {
    child: Child,
    stderr: StderrText,
    /// The line that it printed.
    pub(crate) address: String,
}

impl ServeProcess {
    /// Starts a server, and waits until it prints its address.
    pub(crate) fn start(sandbox: &Sandbox, words: &[&str]) -> Self {
        let words = [&["serve"], words].concat();
        Self::spawn(sandbox.command(&words))
    }

    /// Starts a bridge on a free port, and waits until it prints its address.
    pub(crate) fn bridge(sandbox: &Sandbox, words: &[&str]) -> Self {
        let words = [&["bridge", "--listen", "127.0.0.1:0"], words].concat();
        Self::spawn(sandbox.command(&words))
    }

    /// Starts a bridge that listens elsewhere, and waits until it prints its address.
    pub(crate) fn bridge_at(sandbox: &Sandbox, address: &str, words: &[&str]) -> Self {
        let words = [&["bridge", "--listen", address], words].concat();
        Self::spawn(sandbox.command(&words))
    }

    /// Starts a server on a free port, with resource limits that a shell sets.
    pub(crate) fn with_ulimit(sandbox: &Sandbox, ulimit: &str) -> Self {
        let own = sandbox.command(&["serve", "--listen", "127.0.0.1:0"]);
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
        let mut address = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = StderrText::read(child.stderr.take().unwrap());
        stdout.read_line(&mut address).unwrap();
        Self {
            child,
            stderr,
            address: address.trim_end().to_owned(),
        }
    }

    /// Starts a server on a free port.
    pub(crate) fn on_free_port(sandbox: &Sandbox) -> Self {
        Self::start(sandbox, &["--listen", "127.0.0.1:0"])
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end; returns the status and the text on stderr.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let started_at = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                started_at.elapsed() < Duration::from_secs(20),
                "it does not end"
            );
            thread::sleep(Duration::from_millis(5));
        };
        (status, self.stderr.whole())
    }

    /// Waits until stderr has a text.
    pub(crate) fn wait_for_stderr(&self, part: &str) {
        self.stderr.wait_for(part);
    }

    /// Stops the server, and returns the text on stderr.
    pub(crate) fn stop(self) -> String {
        self.signal(Signal::TERM);
        let (status, stderr_text) = self.wait();
        assert!(status.success(), "{status}: {stderr_text}");
        stderr_text
    }

    /// Calls a tool with the real binary, and returns the structured result.
    pub(crate) fn call(&self, sandbox: &Sandbox, words: &[&str]) -> Value {
        let words = [&["call", "--json", &self.address], words].concat();
        let output = sandbox.command(&words).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", sandbox.render(&output)));
        document["structuredContent"].clone()
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text on stderr, which a thread reads.
#[derive(Clone, Default)]
struct StderrText(Arc<(Mutex<ReadText>, Condvar)>);

#[derive(Default)]
struct ReadText {
    text: String,
    is_complete: bool,
}

impl StderrText {
    fn read(stderr: impl std::io::Read + Send + 'static) -> Self {
        let read = Self::default();
        let (reader, shared) = (BufReader::new(stderr), read.clone());
        thread::spawn(move || {
            let (state, changed) = &*shared.0;
            for line in reader.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                state.lock().unwrap().text += &(line + "\n");
                changed.notify_all();
            }
            state.lock().unwrap().is_complete = true;
            changed.notify_all();
        });
        read
    }

    fn wait_for(&self, part: &str) {
        let (state, changed) = &*self.0;
        let is_missing = |read: &mut ReadText| !read.text.contains(part) && !read.is_complete;
        let locked = state.lock().unwrap();
        let (read, _) = changed
            .wait_timeout_while(locked, LINE_TIMEOUT, is_missing)
            .unwrap();
        assert!(read.text.contains(part), "no `{part}` in: {}", read.text);
    }

    /// Returns the text once all writers have ended.
    fn whole(&self) -> String {
        let (state, changed) = &*self.0;
        let locked = state.lock().unwrap();
        let (read, _) = changed
            .wait_timeout_while(locked, LINE_TIMEOUT, |read| !read.is_complete)
            .unwrap();
        assert!(read.is_complete, "stderr is still open: {}", read.text);
        read.text.clone()
    }
}

/// Sends a `GET` request, and returns the whole response.
pub(crate) fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Returns the processes with a text in their command line.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(text)
    })
    .collect()
}
