//! With somebody at a terminal: a pseudo-terminal, and what is typed into it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::stage::Stage;

/// Runs the binary at a terminal.
pub(crate) struct Session {
    keyboard: File,
    pub(crate) seen: String,
    child: Child,
}

impl Session {
    pub(crate) fn new(stage: &Stage, words: &[&str]) -> Self {
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
        let mut command = stage.command(words);
        command.env("TERM", "xterm");
        command.stdin(side()).stdout(side()).stderr(side());
        Self {
            keyboard: File::from(master),
            seen: String::new(),
            child: command.spawn().unwrap(),
        }
    }

    /// Types a line once some text has come, and nothing was typed since.
    pub(crate) fn answer(&mut self, question: &str, line: &str) {
        let from = self.seen.len();
        while !self.seen[from..].contains(question) {
            assert!(self.read(), "{question} is never asked:\n{}", self.seen);
        }
        self.keyboard.write_all(line.as_bytes()).unwrap();
    }

    /// Presses Ctrl-C, and waits for the end only so long.
    pub(crate) fn interrupt(&mut self) {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-INT", &id]).status().unwrap();
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if begun.elapsed() > Duration::from_secs(20) {
                self.child.kill().unwrap();
                panic!("Ctrl-C is not heard:\n{}", self.seen);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns all that could be seen, and the exit code.
    pub(crate) fn end(mut self, stage: &Stage) -> String {
        while self.read() {}
        let status = self.child.wait().unwrap();
        let seen = anstream::adapter::strip_str(&self.seen).to_string();
        let seen = seen
            .replace("\r\n", "\n")
            .replace(&stage.path().display().to_string(), "~");
        format!("{seen}--- exit {}\n", status.code().unwrap_or(-1))
    }

    /// Reads some more; the end of a terminal is an error.
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
        let stage = Stage::new();
        let mut session = Session::new(&stage, &["call", "SOCKET", "rename", "--era", era]);

        session.answer("> ", "\n");
        session.answer("> ", "Polaris\n");
        session.answer("Send it?", "yes\n");

        insta::allow_duplicates! {
            insta::assert_snapshot!(session.end(&stage), @r"
            unix:~/s asks:
            │ How shall it be called?
            Enter takes what is in brackets, `:decline` says no, Ctrl-D cancels.

            name (text)
            │ How the station is called from now on.
            > 
              this is needed
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
    let stage = Stage::new();
    let mut declined = Session::new(&stage, &["call", "SOCKET", "rename"]);
    let mut cancelled = Session::new(&stage, &["call", "SOCKET", "rename"]);

    declined.answer("> ", ":decline\n");
    cancelled.answer("> ", "\u{4}");

    assert!(
        declined
            .end(&stage)
            .ends_with("It keeps its name.\n--- exit 0\n")
    );
    let cancelled = cancelled.end(&stage);
    assert!(cancelled.contains("nobody answered"), "{cancelled}");
}

#[test]
fn ctrl_c_ends_a_form() {
    let stage = Stage::new();
    let mut session = Session::new(&stage, &["call", "SOCKET", "rename"]);

    session.answer("> ", "");
    session.interrupt();

    let seen = session.end(&stage);
    assert!(seen.ends_with("error: interrupted\n--- exit 2\n"), "{seen}");
}

#[test]
fn a_projects_command_is_asked_for_once() {
    let stage = Stage::new();
    stage.write(
        ".mcp.json",
        r#"{"mcpServers": {"mine": {"command": "/bin/sh", "args": ["-c", "exit 7"]}}}"#,
    );

    let mut first = Session::new(&stage, &["info", "mine"]);
    first.answer("[y/n]", "y\n");
    let first = first.end(&stage);
    let second = Session::new(&stage, &["info", "mine"]).end(&stage);

    insta::assert_snapshot!(first, @r"
    ~/.mcp.json says that `mine` is

      command   /bin/sh -c 'exit 7'
      program   /bin/sh
      in        ~

    Use it? [y/n] y
    error: the server cannot be reached: the server's process exited with code 7

    hint: see what happened with `--verbose`
    --- exit 2
    ");
    assert!(!second.contains("[y/n]"), "{second}");
}

#[test]
fn nothing_of_a_peer_acts_on_the_terminal() {
    let stage = Stage::new();

    let shown = Session::new(&stage, &["call", "SOCKET", "shout"]);

    insta::assert_snapshot!(shown.end(&stage), @r"
    \u{1b}[31mred\u{1b}[0m \u{202e}drawkcab\u{7}
    --- exit 0
    ");
}

#[test]
fn a_terminal_is_shown_the_size_of_a_picture() {
    let stage = Stage::new();

    let shown = Session::new(&stage, &["read", "SOCKET", "weather://sky"]);

    insta::assert_snapshot!(shown.end(&stage), @r"
    [image/png, 4 B]
    --- exit 0
    ");
}

#[test]
fn progress_is_a_bar_on_a_terminal() {
    let stage = Stage::new();

    let mut session = Session::new(&stage, &["call", "SOCKET", "measure"]);
    session.answer("half way", "");
    let seen = session.end(&stage);

    assert!(seen.contains("50 % half way"), "{seen}");
    assert!(seen.ends_with("21.5 degrees\n--- exit 0\n"), "{seen}");
}
