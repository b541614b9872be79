//! Tests of servers on stdio. The server is this test binary, selected by an environment variable.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use turnbuckle_server::stdio;

use crate::{sandbox::Sandbox, weather};

const ROLE: &str = "TURNBUCKLE_TEST_ROLE";

/// Acts as a server if the environment variable is set. Otherwise the test does nothing.
#[test]
fn act_as_server() {
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

/// Returns a command that starts this test binary as the server.
pub(crate) fn command(sandbox: &Sandbox, role: &str, words: &[&str]) -> Command {
    let program = env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let words = [
        words,
        &[
            "--",
            program,
            "--exact",
            "stdio_programs::act_as_server",
            "--nocapture",
        ],
    ]
    .concat();
    let mut command = sandbox.command(&words);
    command.env(ROLE, role);
    command
}

fn run(sandbox: &Sandbox, role: &str, words: &[&str]) -> String {
    let seen = sandbox.render(&command(sandbox, role, words).output().unwrap());
    let program = env::current_exe().unwrap();
    seen.replace(program.to_str().unwrap(), "PROGRAM")
}

#[test]
fn a_program_behind_dashes_is_the_server() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(run(&sandbox, "weather", &["call", "forecast", "city=Oslo"]), @r#"
    {
      "summary": "Sun over Oslo for 3 days",
      "high": 21.5
    }
    "#);
    insta::assert_snapshot!(run(&sandbox, "weather", &["call", "forecast", "city=Atlantis", "--era", "legacy"]), @r"
    --- stderr
    error: `forecast` failed: no station in Atlantis

    hint: show its arguments with `turnbuckle tools forecast -- PROGRAM --exact stdio_programs::act_as_server --nocapture`
    --- exit 1
    ");
}

#[test]
fn stderr_of_a_crashed_program_is_quoted_and_sanitized() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(run(&sandbox, "crash", &["info"]), @r"
    --- stderr
    error: the server cannot be reached: the server process exited with code 3; last lines of stderr:
    no barometer found\u{1b}[2J

    hint: run again with `--verbose` for details
    --- exit 2
    ");
}

#[test]
fn stderr_of_a_program_is_shown_with_the_traffic() {
    let sandbox = Sandbox::new();

    let seen = run(&sandbox, "crash", &["info", "--verbose"]);

    assert!(seen.contains("! no barometer found\\u{1b}[2J\n"), "{seen}");
}

#[test]
fn ctrl_c_and_sigterm_cancel_the_call_and_end_the_program() {
    for signal in ["-INT", "-TERM"] {
        let sandbox = Sandbox::new();
        let mut child = command(&sandbox, "weather", &["call", "sleep", "--verbose"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let asked = stderr.find(|line| line.as_ref().unwrap().contains("tools/call"));
        assert!(asked.is_some());

        let started_at = Instant::now();
        Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        let status = child.wait().unwrap();
        let rest: Vec<_> = stderr.map(Result::unwrap).collect();

        assert_eq!(status.code(), Some(2), "{signal}");
        assert!(
            rest.iter()
                .any(|line| line.contains("notifications/cancelled")),
            "{rest:?}"
        );
        assert!(started_at.elapsed() < Duration::from_secs(20));
    }
}
