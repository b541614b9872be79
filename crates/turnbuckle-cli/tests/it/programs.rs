//! Servers that are started: this test binary itself, told by an environment variable to be one.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use turnbuckle_server::stdio;

use crate::stage::Stage;
use crate::weather;

const ROLE: &str = "TURNBUCKLE_TEST_ROLE";

/// Is a server if it is told to be, and otherwise a test that proves nothing.
#[test]
fn be_a_server() {
    match env::var(ROLE).as_deref() {
        Ok("weather") => {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(stdio::serve(weather::server())).unwrap();
        }
        Ok("crash") => {
            eprintln!("no barometer found\u{1b}[2J");
            std::process::exit(3);
        }
        _ => {}
    }
}

/// Prepares the binary to start this one as a server.
pub(crate) fn command(stage: &Stage, role: &str, words: &[&str]) -> Command {
    let program = env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let words = [
        words,
        &[
            "--",
            program,
            "--exact",
            "programs::be_a_server",
            "--nocapture",
        ],
    ]
    .concat();
    let mut command = stage.command(&words);
    command.env(ROLE, role);
    command
}

fn run(stage: &Stage, role: &str, words: &[&str]) -> String {
    let seen = stage.seen(&command(stage, role, words).output().unwrap());
    let program = env::current_exe().unwrap();
    seen.replace(program.to_str().unwrap(), "PROGRAM")
}

#[test]
fn a_program_behind_dashes_is_the_server() {
    let stage = Stage::new();

    insta::assert_snapshot!(run(&stage, "weather", &["call", "forecast", "city=Oslo"]), @r#"
    {
      "summary": "Sun over Oslo for 3 days",
      "high": 21.5
    }
    "#);
    insta::assert_snapshot!(run(&stage, "weather", &["call", "forecast", "city=Atlantis", "--era", "legacy"]), @r"
    --- stderr
    error: `forecast` failed: there is no station in Atlantis

    hint: show its arguments with `turnbuckle tools forecast -- PROGRAM --exact programs::be_a_server --nocapture`
    --- exit 1
    ");
}

#[test]
fn a_program_that_dies_is_quoted_and_not_obeyed() {
    let stage = Stage::new();

    insta::assert_snapshot!(run(&stage, "crash", &["info"]), @r"
    --- stderr
    error: the server cannot be reached: the server's process exited with code 3, after it said:
    no barometer found\u{1b}[2J

    hint: see what happened with `--verbose`
    --- exit 2
    ");
}

#[test]
fn what_a_program_says_on_stderr_is_shown_with_the_traffic() {
    let stage = Stage::new();

    let seen = run(&stage, "crash", &["info", "--verbose"]);

    assert!(seen.contains("! no barometer found\\u{1b}[2J\n"), "{seen}");
}

#[test]
fn ctrl_c_and_sigterm_cancel_the_call_and_end_the_program() {
    for signal in ["-INT", "-TERM"] {
        let stage = Stage::new();
        let mut child = command(&stage, "weather", &["call", "sleep", "--verbose"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
        let asked = talk.find(|line| line.as_ref().unwrap().contains("tools/call"));
        assert!(asked.is_some());

        let begun = Instant::now();
        Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        let status = child.wait().unwrap();
        let rest: Vec<_> = talk.map(Result::unwrap).collect();

        assert_eq!(status.code(), Some(2), "{signal}");
        assert!(
            rest.iter()
                .any(|line| line.contains("notifications/cancelled")),
            "{rest:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
