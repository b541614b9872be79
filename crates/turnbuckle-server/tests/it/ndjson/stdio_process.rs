//! A server process with real pipes.
//!
//! The process is this test binary, controlled by an environment variable.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_server::{Server, Tool, ToolError, stdio};
use turnbuckle_spec_coverage::{req, saw_message};

use crate::{
    ndjson::test_client::{initialize, modern},
    spec::revision_client::{EVERY, MODERN},
};

const ROLE: &str = "TURNBUCKLE_TEST_IS_SERVER";
/// Output of the test runner precedes it.
const READY: &str = "the server begins";

#[test]
fn run_server() {
    let Ok(threads) = env::var(ROLE) else {
        return;
    };
    println!("\n{READY}");
    print!("left in the buffer");
    let mut runtime = match &*threads {
        "one" => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build().unwrap();
    let served = runtime.block_on(stdio::serve(server()));
    println!("after the end");
    eprintln!("served: {served:?}");
    std::process::exit(i32::from(served.is_err()));
}

#[expect(clippy::print_stdout, reason = "printing is what is tested")]
fn server() -> Server {
    let print = Tool::new("print", async || {
        println!("stray from a handler");
        let child = Command::new("sh")
            .args(["-c", "echo stray from a child; cat"])
            .status();
        Ok(format!("{}", child.is_ok_and(|status| status.success())))
    });
    // It never ends, so a process that waits for it does not end either.
    let block = Tool::blocking("block", || -> Result<String, ToolError> {
        loop {
            std::thread::park();
        }
    });
    let nap = Tool::new("nap", async || {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok("rested".to_owned())
    });
    #[cfg(unix)]
    let until_signal = Tool::new("until_signal", async || {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        fs::write(gate(std::process::id()), "")?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok("finished".to_owned())
    });
    let forever = Tool::new("forever", async || {
        std::future::pending::<()>().await;
        Ok(String::new())
    });
    let stuck = Tool::new("stuck", async || {
        // Without yielding, unlike a proper handler: it blocks the reading thread.
        let gate = gate(std::process::id());
        let mut looks = 0..6_000;
        while !gate.exists() && looks.next().is_some() {
            std::thread::sleep(Duration::from_millis(10));
        }
        fs::remove_file(gate)?;
        Ok("free".to_owned())
    });
    let large = Tool::new("large", async || Ok("x".repeat(200_000)));
    let server = Server::new("process", "1");
    #[cfg(unix)]
    let server = server.tool(until_signal);
    server
        .tool(print)
        .tool(block)
        .tool(nap)
        .tool(forever)
        .tool(stuck)
        .tool(large)
}

/// The file that releases `stuck` in a process, and that `until_signal` creates when it can be released.
fn gate(process: u32) -> PathBuf {
    env::temp_dir().join(format!("turnbuckle-gate-{process}"))
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start() -> Self {
        Self::with_threads("many")
    }

    /// Starts a server with a single-threaded or multi-threaded runtime.
    fn with_threads(threads: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "ndjson::stdio_process::run_server",
                "--nocapture",
            ])
            .env(ROLE, threads)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while line.trim() != READY {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the server starts");
        }
        Self {
            child,
            input,
            output,
        }
    }

    fn call(&mut self, id: i64, tool: &str) {
        let params = modern(json!({ "name": tool, "arguments": {} }));
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }

    fn send(&mut self, message: &Value) {
        saw_message(&message.to_string());
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        saw_message(&line);
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("only messages: {line:?}"))
    }

    fn ping(&mut self) {
        self.send(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
        assert_eq!(self.next()["id"], "p");
    }

    /// Ends the input and waits for the exit. Returns the remaining output of both streams.
    fn end(mut self) -> (Vec<Value>, String) {
        drop(self.input.take());
        self.end_by_itself()
    }

    /// Waits for the exit with open input. Returns the remaining output of both streams.
    fn end_by_itself(mut self) -> (Vec<Value>, String) {
        let (mut rest, mut stderr) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        assert!(self.child.wait().unwrap().success(), "{stderr}");
        let rest = rest
            .lines()
            .map(|line| serde_json::from_str(line).expect(line));
        (rest.collect(), stderr)
    }

    #[cfg(target_os = "linux")]
    fn has_writer(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let mut names = threads.map(|thread| thread.unwrap().path().join("comm"));
        names.any(|name| std::fs::read_to_string(name).is_ok_and(|name| name == "mcp stdout\n"))
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &id])
                .status()
                .unwrap()
                .success()
        );
    }
}

#[cfg(unix)]
#[test]
fn stray_prints_stay_off_standard_output() {
    req!(
        "stdio.stdout.only-mcp",
        "stdio.server.streams",
        "stdio.stderr.log"
    );

    for revision in EVERY {
        let mut process = Process::start();

        let response = match revision {
            MODERN => {
                process.call(1, "print");
                process.next()
            }
            _ => {
                process.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(revision, json!({})) }));
                assert_eq!(process.next()["result"]["protocolVersion"], revision);
                process.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
                process.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "print" } }));
                process.next()
            }
        };
        process.ping();
        let (rest, stderr) = process.end();

        assert_eq!(
            response["result"]["content"][0]["text"], "true",
            "children find no input"
        );
        assert_eq!(rest, [] as [Value; 0]);
        for stray in [
            "left in the buffer",
            "stray from a handler",
            "stray from a child",
            "after the end",
        ] {
            assert!(stderr.contains(stray), "{stray:?} in {stderr}");
        }
    }
}

#[test]
fn after_the_end_of_input_everything_is_answered() {
    req!("stdio.shutdown.server-eof");
    for threads in ["one", "many"] {
        let mut process = Process::with_threads(threads);
        for id in 0..100 {
            process.call(id, if id % 10 == 0 { "nap" } else { "large" });
        }

        let (rest, _) = process.end();

        let mut ids: Vec<_> = rest
            .iter()
            .map(|response| response["id"].as_i64().unwrap())
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn a_client_that_writes_everything_before_it_reads_is_served() {
    let mut process = Process::start();
    // More than the capacity of a pipe, in both directions.
    for id in 0..2_000 {
        process.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    }

    for id in 0..2_000 {
        assert_eq!(process.next()["id"], id);
    }
    process.end();
}

#[cfg(unix)]
#[test]
fn responses_are_flushed_while_later_requests_of_the_same_read_run() {
    let mut process = Process::start();
    let ping = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let pings = (0..200).map(|id| format!("{}\n", ping(id)));
    let params = modern(json!({ "name": "stuck", "arguments": {} }));
    let stuck = json!({ "jsonrpc": "2.0", "id": 200, "method": "tools/call", "params": params });
    let all: String = pings.chain([format!("{stuck}\n")]).collect();

    let input = process.input.as_mut().unwrap();
    input.write_all(all.as_bytes()).unwrap();

    for id in 0..60 {
        assert_eq!(process.next()["id"], id);
    }
    fs::write(gate(process.child.id()), "").unwrap();
    for id in 60..200 {
        assert_eq!(process.next()["id"], id);
    }
    // It stops after a minute: then no response was seen before.
    assert_eq!(process.next()["result"]["content"][0]["text"], "free");
    process.end();
}

#[cfg(unix)]
#[test]
fn signals_end_the_process_after_a_call_that_ends_in_time() {
    req!("stdio.shutdown.server-close");
    for signal in ["TERM", "INT"] {
        let mut process = Process::start();
        process.call(1, "forever");
        process.call(2, "until_signal");
        let started = gate(process.child.id());
        while !started.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::remove_file(started).unwrap();

        process.signal(signal);
        let (rest, _) = process.end_by_itself();

        assert_eq!(rest.len(), 1, "what is done within the second is answered");
        assert_eq!(rest[0]["id"], 2);
    }
}

#[test]
fn blocking_or_waiting_calls_do_not_delay_others() {
    let mut process = Process::start();
    process.call(1, "block");
    process.call(2, "forever");
    process.ping();

    for id in [1, 2] {
        let params = json!({ "requestId": id });
        process.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
        );
    }
    process.ping();
    process.call(3, "nap");

    assert_eq!(process.next()["id"], 3);
    // Neither call ends, so the process ends only if it waits for none of them.
    process.end();
}

#[test]
fn a_client_that_disconnects_silently_ends_the_session() {
    let mut process = Process::start();
    process.call(1, "forever");
    process.ping();
    let Process {
        mut child,
        mut input,
        output,
    } = process;

    drop(output);
    // A closed pipe shows only on write.
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;
    let input = input.as_mut().unwrap();
    let _ = input.write_all(&[ping, &b"\n"[..]].concat());

    // The call never ends, so the process ends only if it does not wait for it.
    assert!(child.wait().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_thread_writes_only_what_the_first_could_not() {
    let mut process = Process::start();
    process.ping();
    let before = process.has_writer();
    process.call(1, "nap");
    process.next();

    assert_eq!((before, process.has_writer()), (false, true));
}
