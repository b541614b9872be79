//! `record`: bytes, exit codes and signals pass unchanged, and the recording has the messages without secrets.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use turnbuckle_protocol::recording::{EntryKind, LinkKind, MessageSide, Recording, correlate};

use crate::{http, sandbox::Sandbox, stdio_programs};

/// The time that a test waits for an event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);
const FILE: &str = "traffic.mcp.jsonl";

/// Relays to a shell script, with this input.
fn relay(sandbox: &Sandbox, script: &str, input: &[u8]) -> Output {
    let mut child = sandbox
        .command(&["record", "-o", FILE, "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

fn recording(sandbox: &Sandbox) -> Recording {
    let recording = Recording::from_slice(&fs::read(sandbox.path().join(FILE)).unwrap());
    assert_eq!(recording.errors, []);
    recording
}

/// Returns the kinds of all entries; of messages and noise with the sender.
fn summary(recording: &Recording) -> Vec<String> {
    let entries = recording.entries.iter();
    let summary = entries.map(|entry| match &entry.kind {
        EntryKind::Message(message) => format!("{:?} message", message.from),
        EntryKind::Noise(output) => format!("{:?} noise", output.from),
        kind => kind.name().to_owned(),
    });
    summary.collect()
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill")
        .args([format!("-{signal}"), process.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

#[test]
fn bytes_pass_unchanged_in_both_directions() {
    let sandbox = Sandbox::new();
    let mut input = b"\xff\xfe\x00 not text\r\n\n{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n".to_vec();
    input.extend((0..300_000_u32).map(|number| number as u8));
    input.extend(b"\nno line end");

    let output = relay(&sandbox, "cat; printf '\\377 oops' >&2", &input);

    assert!(output.stdout == input, "{} bytes", output.stdout.len());
    assert_eq!(output.stderr, b"\xff oops");
    assert_eq!(output.status.code(), Some(0));
    let recording = recording(&sandbox);
    let kinds = summary(&recording);
    assert_eq!(kinds[0], "open");
    assert_eq!(kinds.last().unwrap(), "close");
    for side in ["Client", "Server"] {
        let is_of_side = |kind: &&String| kind.starts_with(side);
        let first: Vec<_> = kinds.iter().filter(is_of_side).take(2).collect();
        assert_eq!(
            first,
            [&format!("{side} noise"), &format!("{side} message")]
        );
    }
    let last_noise = recording
        .entries
        .iter()
        .rev()
        .find_map(|entry| match &entry.kind {
            EntryKind::Noise(output) => output.bytes(),
            _ => None,
        });
    assert_eq!(last_noise.unwrap(), b"no line end");
}

#[test]
fn exit_codes_and_signals_pass_to_the_client() {
    for (script, code, signal) in [
        ("exit 0", Some(0), None),
        ("exit 7", Some(7), None),
        ("kill -KILL $$", None, Some(9)),
        // This process handles SIGTERM, and still ends by it.
        ("kill -TERM $$", None, Some(15)),
    ] {
        let sandbox = Sandbox::new();

        let output = relay(&sandbox, script, b"");

        let status = output.status;
        assert_eq!((status.code(), status.signal()), (code, signal), "{script}");
        assert_eq!(output.stderr, b"", "{script}");
        let Some(EntryKind::Close(close)) = recording(&sandbox)
            .entries
            .last()
            .map(|entry| entry.kind.clone())
        else {
            panic!("{script}");
        };
        assert_eq!((close.code, close.signal), (code, signal), "{script}");
    }
}

#[test]
fn a_program_that_does_not_exist_is_reported() {
    let sandbox = Sandbox::new();
    let seen = sandbox.run(&["record", "-o", FILE, "--", "no-such-program"]);
    assert!(
        seen.contains("no-such-program") && seen.contains("--- exit 2"),
        "{seen}"
    );
}

#[test]
fn signals_pass_to_the_program() {
    for (signal, code) in [("TERM", 5), ("INT", 5), ("USR1", 6)] {
        let sandbox = Sandbox::new();
        let script =
            "trap 'exit 5' TERM INT; trap 'exit 6' USR1; echo ready; while :; do sleep 0.05; done";
        let mut child = sandbox
            .command(&["record", "-o", FILE, "--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");

        send(signal, child.id());

        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
}

#[test]
fn a_killed_relay_ends_the_program() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let script = "exec 3>pipe; echo ready >&3; sleep 1000 & sleep 1000";
    let mut child = sandbox
        .command(&["record", "-o", FILE, "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(File::open(pipe).unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");

    send("KILL", child.id());
    child.wait().unwrap();

    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        let _ = done.send(rest);
    });
    let rest = ended.recv_timeout(EVENT_TIMEOUT);
    assert_eq!(rest.as_deref(), Ok(""), "the program is still there");
}

#[test]
fn a_real_conversation_is_recorded_in_order_without_secrets() {
    let sandbox = Sandbox::new();
    let relay = env!("CARGO_BIN_EXE_turnbuckle");
    let words = ["call", "forecast", "city=Oslo", "--"];
    let record = [relay, "record", "-o", FILE, "--redact", "re:Oslo"];
    let mut command = sandbox.command(&[&words[..], &record].concat());
    let program = stdio_programs::command(&sandbox, "weather", &[]);
    command.args(program.get_args());
    command.envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );

    let output = command.output().unwrap();

    assert!(output.status.success(), "{}", sandbox.render(&output));
    let text = fs::read_to_string(sandbox.path().join(FILE)).unwrap();
    assert!(
        !text.contains("Oslo") && text.contains("$redacted"),
        "{text}"
    );
    let mode = fs::metadata(sandbox.path().join(FILE))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let recording = recording(&sandbox);
    let header = recording.header.as_ref().unwrap();
    assert_eq!(header.redacted, ["headers", "re:"]);
    let messages = recording
        .entries
        .iter()
        .filter_map(|entry| match &entry.kind {
            EntryKind::Message(message) => Some((message.from, message.message.as_str())),
            _ => None,
        });
    let messages: Vec<_> = messages.collect();
    assert_eq!(messages[0].0, MessageSide::Client);
    assert!(messages[0].1.contains("server/discover"), "{messages:?}");
    assert_eq!(messages[1].0, MessageSide::Server);
    let is_call = |(from, text): &(MessageSide, &str)| {
        *from == MessageSide::Client && text.contains("tools/call")
    };
    assert!(messages.iter().any(is_call), "{messages:?}");
    let links = correlate(&recording.entries);
    let responses = links.iter().filter(|link| link.kind == LinkKind::Response);
    assert_eq!(responses.count(), messages.len() / 2, "{messages:?}");
    let times: Vec<_> = recording.entries.iter().map(|entry| entry.t).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_file_that_exists_is_kept() {
    let sandbox = Sandbox::new();

    for _ in 0..2 {
        sandbox.run(&["record", "-o", FILE, "--", "sh", "-c", "exit"]);
    }

    for name in [FILE, "traffic-2.mcp.jsonl"] {
        let file = fs::read(sandbox.path().join(name)).unwrap();
        assert!(file.starts_with(b"{\"recording\""), "{name}");
    }
}

#[test]
fn without_a_name_each_recording_gets_its_own_file() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path().join("recordings")).unwrap();

    for _ in 0..2 {
        sandbox.run(&["record", "-o", "recordings", "--", "sh", "-c", "exit"]);
    }

    let files = fs::read_dir(sandbox.path().join("recordings")).unwrap();
    let names: Vec<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names
            .iter()
            .all(|name| name.starts_with("sh-") && name.ends_with(".mcp.jsonl"))
    );
}

/// A relay on HTTP. It is ended when this is dropped.
struct HttpRelay {
    child: Child,
    url: String,
}

impl HttpRelay {
    fn start(sandbox: &Sandbox, upstream: &str) -> Self {
        Self::start_with(sandbox, &[upstream])
    }

    fn start_with(sandbox: &Sandbox, words: &[&str]) -> Self {
        let record = ["record", "-o", FILE, "--listen", "127.0.0.1:0"];
        let mut child = sandbox
            .command(&[&record, words].concat())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        let url = line.split(' ').nth(1).unwrap_or_default().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        thread::spawn(move || stderr.read_to_string(&mut String::new()));
        Self { child, url }
    }

    /// Connects to the relay.
    fn connect(&self) -> TcpStream {
        let (authority, _) = self.url["http://".len()..].split_once('/').unwrap();
        let stream = TcpStream::connect(authority).unwrap();
        stream.set_read_timeout(Some(EVENT_TIMEOUT)).unwrap();
        stream
    }

    /// Ends the relay with SIGTERM, so that the recording is complete.
    fn stop(mut self) {
        send("TERM", self.child.id());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for HttpRelay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn http_is_relayed_and_recorded_without_tokens() {
    for era in ["modern", "legacy"] {
        let sandbox = Sandbox::new();
        let relay = HttpRelay::start(&sandbox, &http::serve(&sandbox));

        let seen = sandbox.run(&[
            "call",
            &relay.url,
            "forecast",
            "city=Oslo",
            "--token",
            "sesame",
            "--era",
            era,
        ]);
        relay.stop();

        assert!(seen.contains("Sun over Oslo"), "{seen}");
        let text = fs::read_to_string(sandbox.path().join(FILE)).unwrap();
        assert!(!text.contains("sesame"), "{text}");
        let recording = recording(&sandbox);
        let kinds = summary(&recording);
        let expected = [
            "open",
            "request",
            "Client message",
            "response",
            "Server message",
        ];
        assert_eq!(kinds[..5], expected, "{text}");
        let links = correlate(&recording.entries);
        let is_response =
            |link: &&turnbuckle_protocol::recording::EntryLink| link.kind == LinkKind::Response;
        assert!(links.iter().filter(is_response).count() >= 2, "{text}");
    }
}

/// A server that writes as the test tells it to, and returns the head of the request.
fn scripted_server(
    respond: impl FnOnce(&mut TcpStream) + Send + 'static,
) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?a=%20b", listener.local_addr().unwrap());
    let (heads, requests) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        heads.send(String::from_utf8(head).unwrap()).unwrap();
        respond(&mut stream);
    });
    (url, requests)
}

#[test]
fn an_event_stream_passes_unbuffered_and_unchanged() {
    let sandbox = Sandbox::new();
    let (seen, is_seen) = mpsc::channel::<()>();
    let (url, requests) = scripted_server(move |stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Odd-Case: \tyes\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"a\r\nid: 5\ndata\r\n").unwrap();
        // Waits until the client has received the first part.
        is_seen.recv_timeout(EVENT_TIMEOUT).unwrap();
        stream.write_all(b"6\r\n: {}\n\n\r\n0\r\n\r\n").unwrap();
    });
    let relay = HttpRelay::start(&sandbox, &url);
    let mut client = relay.connect();

    client
        .write_all(b"GET /mcp?a=%20b&token=s3cret HTTP/1.1\r\nHost: localhost:1\r\nX-Odd-CASE: 1\r\nAuthorization: Bearer s3cret\r\n\r\n")
        .unwrap();
    let mut received = Vec::new();
    let mut read_until = |end: &[u8]| {
        while !received.ends_with(end) {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            received.push(byte[0]);
        }
        String::from_utf8(received.clone()).unwrap()
    };
    let head = read_until(b"data\r\n");
    seen.send(()).unwrap();
    let all = read_until(b"0\r\n\r\n");
    relay.stop();

    assert!(head.contains("\r\nX-Odd-Case: yes\r\n"), "{head}");
    // The digits of chunk sizes may have another case.
    let body = "a\r\nid: 5\ndata\r\n6\r\n: {}\n\n\r\n0\r\n\r\n";
    assert!(all.to_lowercase().ends_with(body), "{all}");
    let request = requests.recv_timeout(EVENT_TIMEOUT).unwrap();
    assert!(
        request.starts_with("GET /mcp?a=%20b&token=s3cret HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("X-Odd-CASE: 1\r\n"), "{request}");
    assert!(request.contains("Bearer s3cret\r\n"), "{request}");
    let host = url.split('/').nth(2).unwrap();
    assert!(
        request
            .to_ascii_lowercase()
            .contains(&format!("host: {host}\r\n")),
        "{request}"
    );
    let recording = recording(&sandbox);
    let kinds = summary(&recording);
    let expected = [
        "open",
        "request",
        "response",
        "event",
        "Server noise",
        "end",
    ];
    assert_eq!(kinds[..6], expected);
    let text = fs::read_to_string(sandbox.path().join(FILE)).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn a_compressed_response_is_passed_on_but_not_recorded() {
    let sandbox = Sandbox::new();
    let (url, requests) = scripted_server(|stream| {
        let response = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\ns3cret";
        stream.write_all(response.as_bytes()).unwrap();
    });
    let relay = HttpRelay::start(&sandbox, &url);
    let mut client = relay.connect();

    client
        .write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    relay.stop();

    assert!(response.ends_with("s3cret"), "{response}");
    let request = requests.recv_timeout(EVENT_TIMEOUT).unwrap();
    let request = request.to_ascii_lowercase();
    assert!(
        request.contains("accept-encoding: identity\r\n"),
        "{request}"
    );
    let text = fs::read_to_string(sandbox.path().join(FILE)).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    assert!(text.contains(r#""reason":"encoding""#), "{text}");
}

#[test]
fn a_client_that_leaves_during_a_response_closes_the_connection_to_the_server() {
    let sandbox = Sandbox::new();
    let (closed, is_closed) = mpsc::channel();
    let (url, _requests) = scripted_server(move |stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n: a\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let _ = closed.send(stream.read(&mut [0]).unwrap_or_default());
    });
    let relay = HttpRelay::start(&sandbox, &url);
    let mut client = relay.connect();
    client
        .write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut received = Vec::new();
    while !received.ends_with(b": a\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        received.push(byte[0]);
    }

    drop(client);

    assert_eq!(is_closed.recv_timeout(EVENT_TIMEOUT), Ok(0));
    relay.stop();
    let text = fs::read_to_string(sandbox.path().join(FILE)).unwrap();
    assert!(text.contains("interrupted before the end"), "{text}");
}

#[test]
fn requests_to_other_hosts_are_rejected() {
    for headers in [
        "Host: evil.example",
        "Host: localhost\r\nOrigin: http://evil.example",
    ] {
        let sandbox = Sandbox::new();
        let (url, requests) = scripted_server(|_| {});
        let open = "--dangerously-allow-unauthenticated";
        let relay = HttpRelay::start_with(&sandbox, &[open, &url]);
        let mut client = relay.connect();

        write!(client, "GET /mcp HTTP/1.1\r\n{headers}\r\n\r\n").unwrap();
        let mut status = String::new();
        BufReader::new(&client).read_line(&mut status).unwrap();

        assert!(status.starts_with("HTTP/1.1 403"), "{headers}: {status}");
        relay.stop();
        assert!(requests.try_recv().is_err(), "{headers}");
    }
}

#[test]
fn an_unreachable_server_is_answered_with_502() {
    let sandbox = Sandbox::new();
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let relay = HttpRelay::start(&sandbox, &format!("http://{free}/mcp"));
    let mut client = relay.connect();

    client
        .write_all(b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        .unwrap();
    let mut status = String::new();
    BufReader::new(&client).read_line(&mut status).unwrap();
    relay.stop();

    assert!(status.starts_with("HTTP/1.1 502"), "{status}");
    let end = recording(&sandbox)
        .entries
        .into_iter()
        .find_map(|entry| match entry.kind {
            EntryKind::End(end) => end.error,
            _ => None,
        });
    assert!(end.is_some());
}

#[test]
fn wrong_arguments_are_explained() {
    let sandbox = Sandbox::new();
    let url = "http://127.0.0.1:1/mcp";

    insta::assert_snapshot!(sandbox.run(&["record"]), @r"
    --- stderr
    error: no server to record

    hint: give a URL, or a program after `--`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["record", "--listen", "0.0.0.0:0", url]), @r"
    --- stderr
    error: 0.0.0.0:0 can be reached by other machines

    hint: use 127.0.0.1, or `--dangerously-allow-unauthenticated`
    --- exit 2
    ");
    for rule in ["re:(", "/~"] {
        let seen = sandbox.run(&["record", "--redact", rule, url]);
        assert!(seen.contains(&format!("`--redact {rule}`")), "{seen}");
    }
}
