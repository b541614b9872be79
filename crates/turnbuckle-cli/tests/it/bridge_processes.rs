//! The programs that `turnbuckle bridge` starts: wrappers that fork, programs that do not end, die or print noise.
//!
//! Processes are found by their process groups in `/proc`, where zombies are listed too.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{sandbox::Sandbox, serve_process::ServeProcess};

/// A legacy server in a shell: tools that die, and text on stderr that clients must not see.
pub(crate) const SERVER: &str = r#"
echo 'SECRET on stderr' >&2
while IFS= read -r line; do
  case $line in *'"id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"ok","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"exit"'*) echo 'SECRET reason' >&2; exit 3 ;;
    *'"name":"kill"'*) kill -KILL $$ ;;
    *'"name":"noise"'*) echo 'SECRET noise'; result='{"content":[]}' ;;
    *) result='{"content":[{"type":"text","text":"done"}]}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Returns the state, parent and group of a process.
fn process(id: u32) -> Option<(char, u32, u32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((
        state,
        fields.next()?.parse().ok()?,
        fields.next()?.parse().ok()?,
    ))
}

fn process_ids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the process groups of the programs that a bridge has started.
fn groups_of(bridge: u32) -> BTreeSet<u32> {
    let is_supervisor = |id: u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("supervise-children")
    };
    process_ids()
        .filter_map(|id| Some((id, process(id)?)))
        .filter(|(id, (_, parent, _))| *parent == bridge && !is_supervisor(*id))
        .map(|(_, (_, _, group))| group)
        .collect()
}

/// Returns the processes of some groups, zombies included.
fn members(groups: &BTreeSet<u32>) -> Vec<(u32, char)> {
    process_ids()
        .filter_map(|id| Some((id, process(id)?)))
        .filter(|(_, (_, _, group))| groups.contains(group))
        .map(|(id, (state, _, _))| (id, state))
        .collect()
}

/// Waits until the groups are empty; returns how long that took.
fn wait_until_gone(groups: &BTreeSet<u32>, limit: Duration) -> Duration {
    let started_at = Instant::now();
    loop {
        let left = members(groups);
        if left.is_empty() {
            return started_at.elapsed();
        }
        assert!(started_at.elapsed() < limit, "left: {left:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the bridge has a number of programs.
pub(crate) fn wait_for_programs(
    bridge: &ServeProcess,
    is_right: impl Fn(usize) -> bool,
    limit: Duration,
) {
    let started_at = Instant::now();
    while !is_right(groups_of(bridge.id()).len()) {
        let left = groups_of(bridge.id());
        assert!(started_at.elapsed() < limit, "{} programs", left.len());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a message; returns the headers and body of the response.
pub(crate) fn post(url: &str, session: Option<&str>, message: &Value) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let body = message.to_string();
    let session = session.map_or(String::new(), |id| format!("Mcp-Session-Id: {id}\r\n"));
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{session}\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Opens a session; returns its id, and the response.
pub(crate) fn initialize(url: &str) -> (String, String) {
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let (head, body) = post(url, None, &initialize);
    let session = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id").then_some(value)
    });
    let session = session.unwrap_or_else(|| panic!("{head}")).to_owned();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(url, Some(&session), &initialized);
    (session, body)
}

/// Opens a session, and lists the tools, which starts a program. Returns the session id.
pub(crate) fn open_session(url: &str) -> String {
    let (session, _) = initialize(url);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let (_, listed) = post(url, Some(&session), &list);
    assert!(listed.contains("\"ok\""), "{listed}");
    session
}

pub(crate) fn call(url: &str, session: &str, tool: &str) -> String {
    let params = json!({ "name": tool, "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    let (_, response) = post(url, Some(session), &call);
    assert!(!response.contains("SECRET"), "{response}");
    response
}

/// Starts a bridge to a program, with a legacy server.
fn bridge(sandbox: &Sandbox, options: &[&str], program: &[&str]) -> ServeProcess {
    let words = [&["--server-era", "legacy"], options, &["--"], program].concat();
    let bridge = ServeProcess::bridge(sandbox, &words);
    assert!(bridge.address.starts_with("http://"), "{}", bridge.address);
    bridge
}

/// A server that ignores the end of its input and SIGTERM.
fn stubborn() -> String {
    format!("trap '' TERM\n{SERVER}\nwhile :; do sleep 1; done")
}

/// Writes wrappers of the server into the sandbox; returns the command of each.
fn wrappers(sandbox: &Sandbox) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    sandbox.write("server.sh", SERVER);
    sandbox.write("stubborn.sh", &stubborn());
    // A grandchild with a parent that exits at once, in the same group.
    sandbox.write(
        "fork.sh",
        &format!("(trap '' TERM; sleep 1000 &)\n{SERVER}"),
    );
    // As `uvx` does: Python that starts Python.
    sandbox.write(
        "wrapper.py",
        "import subprocess, sys\nsys.exit(subprocess.run([sys.executable, 'server.py']).returncode)",
    );
    sandbox.write(
        "server.py",
        "import subprocess, sys\nsys.exit(subprocess.run(['sh', 'server.sh']).returncode)",
    );
    let mut commands = vec![
        words(&["sh", "-c", "sh server.sh; true"]),
        words(&["sh", "stubborn.sh"]),
        words(&["sh", "fork.sh"]),
        words(&["python3", "wrapper.py"]),
    ];
    let has_npx = std::process::Command::new("npx").arg("--version").output();
    if has_npx.is_ok_and(|output| output.status.success()) {
        // npx starts a shell, which starts node, which starts the server.
        let start = "#!/usr/bin/env node\nconst { spawn } = require('child_process');\n\
                     spawn('sh', ['server.sh'], { stdio: 'inherit' }).on('exit', process.exit);\n";
        sandbox.write("node_modules/shell-server/start.js", start);
        let package = json!({
            "name": "shell-server", "version": "1.0.0", "bin": { "shell-server": "start.js" },
        });
        sandbox.write(
            "node_modules/shell-server/package.json",
            &package.to_string(),
        );
        sandbox.write("package.json", r#"{ "name": "test", "version": "1.0.0" }"#);
        let bin = sandbox.path().join("node_modules/.bin");
        fs::create_dir_all(&bin).unwrap();
        let start = sandbox.path().join("node_modules/shell-server/start.js");
        let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        fs::set_permissions(&start, mode).unwrap();
        std::os::unix::fs::symlink(start, bin.join("shell-server")).unwrap();
        commands.push(words(&["npx", "--no-install", "shell-server"]));
    }
    commands
}

/// Ends bridges to all wrappers, each with a program in use. Returns how long that took.
fn assert_end_leaves_nothing(signal: Signal, limit: Duration) -> String {
    let sandbox = Sandbox::new();
    let commands = wrappers(&sandbox);
    let end = |command: &[String]| {
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        let bridge = bridge(&sandbox, &["--share", "all"], &command);
        let session = open_session(&bridge.address);
        assert!(call(&bridge.address, &session, "ok").contains("done"));
        wait_for_programs(&bridge, |count| count == 1, Duration::from_secs(15));
        let groups = groups_of(bridge.id());

        bridge.signal(signal);

        let took = wait_until_gone(&groups, limit);
        let (status, stderr) = bridge.wait();
        let is_success = [Signal::TERM, Signal::QUIT].contains(&signal);
        assert_eq!(
            status.success(),
            is_success,
            "{command:?} {took:?}: {stderr}"
        );
        format!("{signal:?} {command:?}: programs gone after {took:?}\n")
    };
    thread::scope(|scope| {
        let ends = commands.iter().map(|command| scope.spawn(|| end(command)));
        let ends: Vec<_> = ends.collect();
        let times = ends.into_iter().map(|end| end.join().unwrap());
        times.collect()
    })
}

// The limits are 5 seconds after SIGTERM and 2 after SIGKILL; the rest is for a busy machine. The output has the times.

#[test]
fn sigterm_of_the_bridge_ends_wrappers_that_fork() {
    let times = assert_end_leaves_nothing(Signal::TERM, Duration::from_secs(9));
    eprint!("{times}");
}

#[test]
fn sigquit_of_the_bridge_ends_wrappers_that_fork() {
    let times = assert_end_leaves_nothing(Signal::QUIT, Duration::from_secs(9));
    eprint!("{times}");
}

#[test]
fn sigkill_of_the_bridge_ends_wrappers_that_fork() {
    let times = assert_end_leaves_nothing(Signal::KILL, Duration::from_secs(6));
    eprint!("{times}");
}

#[test]
fn a_crash_of_the_bridge_ends_wrappers_that_fork() {
    let times = assert_end_leaves_nothing(Signal::ABORT, Duration::from_secs(6));
    eprint!("{times}");
}

#[test]
fn fifty_cut_sessions_leave_no_program() {
    let sandbox = Sandbox::new();
    sandbox.write("server.sh", SERVER);
    let bridge = bridge(&sandbox, &["--idle", "20s"], &["sh", "server.sh"]);
    for _ in 0..50 {
        open_session(&bridge.address);
    }
    assert!(groups_of(bridge.id()).len() > 40);

    let cut_at = Instant::now();
    wait_for_programs(&bridge, |count| count == 0, Duration::from_secs(30));

    eprintln!(
        "programs gone {:?} after the last session",
        cut_at.elapsed()
    );
    bridge.stop();
}

#[test]
fn more_sessions_than_connections_close_the_idle_ones() {
    let sandbox = Sandbox::new();
    sandbox.write("server.sh", SERVER);
    let bridge = bridge(&sandbox, &["--max-connections", "3"], &["sh", "server.sh"]);
    let first = open_session(&bridge.address);
    for _ in 0..9 {
        open_session(&bridge.address);
    }
    wait_for_programs(&bridge, |count| count <= 3, Duration::from_secs(20));

    assert!(call(&bridge.address, &first, "ok").contains("done"));
    bridge.stop();
}

#[test]
fn the_end_of_a_session_and_of_a_call_ends_its_program() {
    let sandbox = Sandbox::new();
    sandbox.write("stubborn.sh", &stubborn());
    for share in ["session", "call"] {
        let bridge = bridge(&sandbox, &["--share", share], &["sh", "stubborn.sh"]);
        let session = open_session(&bridge.address);
        assert!(call(&bridge.address, &session, "ok").contains("done"));
        if share == "session" {
            // The program of the first attempt, which learned the capabilities, takes four seconds to end.
            wait_for_programs(&bridge, |count| count == 1, Duration::from_secs(15));
            let rest = bridge.address.strip_prefix("http://").unwrap();
            let (host, path) = rest.split_once('/').unwrap();
            let mut stream = TcpStream::connect(host).unwrap();
            let request = format!(
                "DELETE /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
                 Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).unwrap();
            stream.read_to_string(&mut String::new()).unwrap();
        }
        wait_for_programs(&bridge, |count| count == 0, Duration::from_secs(15));
        bridge.stop();
    }
}

#[test]
fn a_dead_shared_program_is_started_again_by_the_next_call() {
    let sandbox = Sandbox::new();
    sandbox.write("server.sh", SERVER);
    let bridge = bridge(&sandbox, &["--share", "all"], &["sh", "server.sh"]);
    let session = open_session(&bridge.address);
    for (tool, reason) in [("exit", "exited 3"), ("kill", "killed by signal 9")] {
        let response = call(&bridge.address, &session, tool);
        assert!(response.contains(reason), "{response}");
        assert!(response.contains("\"kind\":\"disconnected\""), "{response}");
        assert!(response.contains("\"effect\":\"unknown\""), "{response}");

        let response = call(&bridge.address, &session, "ok");
        assert!(response.contains("done"), "{response}");
    }
    // Other text on stdout is not passed on.
    assert!(call(&bridge.address, &session, "noise").contains("\"content\":[]"));
    let stderr = bridge.stop();
    assert!(stderr.contains("exited with code 3"), "{stderr}");
}

#[test]
fn a_program_that_dies_in_the_handshake_is_down_with_a_reason() {
    let sandbox = Sandbox::new();
    sandbox.write("server.sh", SERVER);
    let config = json!({ "mcpServers": {
        "good": { "command": "sh", "args": ["server.sh"] },
        "dies": { "command": "sh", "args": ["-c", "echo 'SECRET host:1234' >&2; exit 7"] },
        "missing": { "command": "/no/such/SECRET/program" },
    } });
    sandbox.write(".mcp.json", &config.to_string());
    let bridge = ServeProcess::bridge(&sandbox, &["--all", "--yes", "--server-era", "legacy"]);
    let (session, body) = initialize(&bridge.address);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let (_, listed) = post(&bridge.address, Some(&session), &list);

    for reason in ["exited 7", "not found"] {
        assert!(
            listed.contains(&format!("\"reason\":\"{reason}\"")),
            "{listed}"
        );
    }
    let called = call(&bridge.address, &session, "dies_ok");
    for text in [&body, &listed, &called] {
        assert!(!text.contains("SECRET") && !text.contains("1234"), "{text}");
    }
    bridge.stop();
}
