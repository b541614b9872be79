//! Tests at a pseudo-terminal.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::sandbox::Sandbox;

/// The binary at a pseudo-terminal.
pub(crate) struct TerminalSession {
    keyboard: File,
    pub(crate) seen: String,
    child: Child,
}

impl TerminalSession {
    pub(crate) fn new(sandbox: &Sandbox, words: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let side = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(&name)
                .unwrap()
        };
        let mut command = sandbox.command(words);
        command.env("TERM", "xterm");
        command.stdin(side()).stdout(side()).stderr(side());
        Self {
            keyboard: File::from(master),
            seen: String::new(),
            child: command.spawn().unwrap(),
        }
    }

    /// Waits for new output with `question`, then types a line.
    pub(crate) fn answer(&mut self, question: &str, line: &str) {
        let from = self.seen.len();
        while !self.seen[from..].contains(question) {
            assert!(self.read(), "{question} is never asked:\n{}", self.seen);
        }
        self.keyboard.write_all(line.as_bytes()).unwrap();
    }

    /// Sends SIGINT, and waits for the end with a timeout.
    pub(crate) fn interrupt(&mut self) {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-INT", &id]).status().unwrap();
        let started_at = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if started_at.elapsed() > Duration::from_secs(20) {
                self.child.kill().unwrap();
                panic!("Ctrl-C is not heard:\n{}", self.seen);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns all output, and the exit code.
    pub(crate) fn end(mut self, sandbox: &Sandbox) -> String {
        while self.read() {}
        let status = self.child.wait().unwrap();
        let seen = anstream::adapter::strip_str(&self.seen).to_string();
        let seen = seen
            .replace("\r\n", "\n")
            .replace(&sandbox.path().display().to_string(), "~");
        format!("{seen}--- exit {}\n", status.code().unwrap_or(-1))
    }

    /// Reads more output; the end of a terminal is an error.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        match self.keyboard.read(&mut bytes) {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.seen += &String::from_utf8_lossy(&bytes[..read]);
                true
            }
        }
    }
}

#[test]
fn a_form_is_filled_in() {
    for era in ["modern", "legacy"] {
        let sandbox = Sandbox::new();
        let mut session =
            TerminalSession::new(&sandbox, &["call", "SOCKET", "rename", "--era", era]);

        session.answer("> ", "\n");
        session.answer("> ", "Polaris\n");
        session.answer("Send it?", "yes\n");

        insta::allow_duplicates! {
            insta::assert_snapshot!(session.end(&sandbox), @r"
            unix:~/s requests input:
            │ How shall it be called?
            Press Enter to accept the value in brackets. Enter `:decline` to decline, press Ctrl-D to cancel.

            name (text)
            │ How the station is called from now on.
            > 
              a value is required
            > Polaris

              name = Polaris
            Send it? [y]es, [e]dit, [n]o: yes
            It is Polaris now.
            --- exit 0
            ");
        }
    }
}

#[test]
fn a_form_is_declined_or_cancelled() {
    let sandbox = Sandbox::new();
    let mut declined = TerminalSession::new(&sandbox, &["call", "SOCKET", "rename"]);
    let mut cancelled = TerminalSession::new(&sandbox, &["call", "SOCKET", "rename"]);

    declined.answer("> ", ":decline\n");
    cancelled.answer("> ", "\u{4}");

    assert!(
        declined
            .end(&sandbox)
            .ends_with("It keeps its name.\n--- exit 0\n")
    );
    let cancelled = cancelled.end(&sandbox);
    assert!(
        cancelled.contains("the user did not respond"),
        "{cancelled}"
    );
}

#[test]
fn ctrl_c_ends_a_form() {
    let sandbox = Sandbox::new();
    let mut session = TerminalSession::new(&sandbox, &["call", "SOCKET", "rename"]);

    session.answer("> ", "");
    session.interrupt();

    let seen = session.end(&sandbox);
    assert!(seen.ends_with("error: interrupted\n--- exit 2\n"), "{seen}");
}

#[test]
fn a_project_command_is_confirmed_once() {
    let sandbox = Sandbox::new();
    sandbox.write(
        ".mcp.json",
        r#"{"mcpServers": {"mine": {"command": "/bin/sh", "args": ["-c", "exit 7"]}}}"#,
    );

    let mut first = TerminalSession::new(&sandbox, &["info", "mine"]);
    first.answer("[y/n]", "y\n");
    let first = first.end(&sandbox);
    let second = TerminalSession::new(&sandbox, &["info", "mine"]).end(&sandbox);

    insta::assert_snapshot!(first, @r"
    ~/.mcp.json defines `mine`:

      command   /bin/sh -c 'exit 7'
      program   /bin/sh
      in        ~

    Use it? [y/n] y
    error: the server cannot be reached: the server process exited with code 7

    hint: run again with `--verbose` for details
    --- exit 2
    ");
    assert!(!second.contains("[y/n]"), "{second}");
}

#[test]
fn text_of_peers_is_escaped_on_a_terminal() {
    let sandbox = Sandbox::new();

    let shown = TerminalSession::new(&sandbox, &["call", "SOCKET", "shout"]);

    insta::assert_snapshot!(shown.end(&sandbox), @r"
    \u{1b}[31mred\u{1b}[0m \u{202e}drawkcab\u{7}
    --- exit 0
    ");
}

#[test]
fn a_terminal_shows_the_size_of_an_image() {
    let sandbox = Sandbox::new();

    let shown = TerminalSession::new(&sandbox, &["read", "SOCKET", "weather://sky"]);

    insta::assert_snapshot!(shown.end(&sandbox), @r"
    [image/png, 4 B]
    --- exit 0
    ");
}

#[test]
fn progress_is_a_bar_on_a_terminal() {
    let sandbox = Sandbox::new();

    let mut session = TerminalSession::new(&sandbox, &["call", "SOCKET", "measure"]);
    session.answer("half way", "");
    let seen = session.end(&sandbox);

    assert!(seen.contains("50 % half way"), "{seen}");
    assert!(seen.ends_with("21.5 degrees\n--- exit 0\n"), "{seen}");
}
