//! `turnbuckle bridge` between hostile clients and a hostile server: its memory stays bounded, and others are served.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    bridge_processes::{
        SERVER as SHELL_SERVER, call, initialize, open_session, post, wait_for_programs,
    },
    sandbox::Sandbox,
    serve_process::ServeProcess,
};

/// A legacy server that floods, and sends endless lists and large, deep and invalid results.
const SERVER: &str = r#"
import json, sys

def send(text):
    sys.stdout.write(text + '\n')

def notify(method, params):
    send(json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params}))

for line in sys.stdin:
    message = json.loads(line)
    if 'id' not in message:
        continue
    method, params = message['method'], message.get('params', {})
    tool = params.get('name')
    result = {'content': [{'type': 'text', 'text': 'done'}]}
    if method == 'initialize':
        result = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {'listChanged': True}, 'prompts': {}, 'logging': {}},
                  'serverInfo': {'name': 'hostile', 'version': '1'}}
    elif method == 'tools/list':
        result = {'tools': [{'name': 'ok', 'inputSchema': {'type': 'object'}}]}
    elif method == 'prompts/list':
        page = int(params.get('cursor') or 0)
        prompts = [{'name': 'p%d-%d' % (page, n), 'description': 'x' * 100} for n in range(200)]
        result = {'prompts': prompts, 'nextCursor': str(page + 1)}
    elif tool == 'flood':
        token = params.get('_meta', {}).get('progressToken')
        for number in range(params['arguments']['count']):
            notify('notifications/progress', {'progressToken': token, 'progress': number, 'message': 'y' * 500})
            notify('notifications/message', {'level': 'error', 'data': 'z' * 500})
            notify('notifications/tools/list_changed', {})
    elif tool == 'large':
        result = {'content': [{'type': 'text', 'text': 'w' * (60 * 1024 * 1024)}]}
    elif tool == 'deep':
        deep = '[' * 500000 + ']' * 500000
        send('{"jsonrpc":"2.0","id":%s,"result":{"content":[],"x":%s}}' % (message['id'], deep))
        sys.stdout.flush()
        continue
    send(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}))
    sys.stdout.flush()
"#;

/// Returns a figure of `/proc/PID/status` in KiB.
fn memory(bridge: &ServeProcess, figure: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", bridge.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with(figure))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Calls the tool that floods, and does not read the response.
fn flood(url: &str, session: &str, count: usize) -> TcpStream {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let meta = json!({ "progressToken": "mine" });
    let params = json!({ "name": "flood", "arguments": { "count": count }, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    let body = call.to_string();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nMcp-Session-Id: {session}\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn set_level(url: &str, session: &str) {
    let params = json!({ "level": "debug" });
    let set = json!({ "jsonrpc": "2.0", "id": 8, "method": "logging/setLevel", "params": params });
    post(url, Some(session), &set);
}

#[test]
fn floods_cut_sessions_and_hostile_results_leave_the_memory_bounded() {
    let sandbox = Sandbox::new();
    sandbox.write("hostile.py", SERVER);
    // The result that is nested too deeply is never a response, so that its call ends with a timeout.
    let program = [
        "--timeout",
        "30s",
        "--server-era",
        "legacy",
        "--share",
        "all",
        "--",
        "python3",
        "hostile.py",
    ];
    let bridge = ServeProcess::bridge(&sandbox, &program);
    let url = &bridge.address;
    let (session, _) = initialize(url);
    set_level(url, &session);
    assert!(call(url, &session, "ok").contains("done"));
    let before = memory(&bridge, "VmRSS:");

    // Clients that never read.
    let unread: Vec<_> = (0..5).map(|_| flood(url, &session, 2_000)).collect();
    assert!(call(url, &session, "ok").contains("done"));
    // Clients that leave in the middle of a call.
    for _ in 0..200 {
        let (session, _) = initialize(url);
        drop(flood(url, &session, 20));
    }
    assert!(call(url, &session, "ok").contains("done"));
    // A list without an end.
    let list = json!({ "jsonrpc": "2.0", "id": 4, "method": "prompts/list" });
    let (_, listed) = post(url, Some(&session), &list);
    assert!(
        listed.contains("\"kind\":\"invalid\""),
        "{}",
        &listed[..listed.len().min(500)]
    );
    let small = memory(&bridge, "VmRSS:").saturating_sub(before);
    assert!(small < 128 * 1024, "{small} KiB more");

    for tool in ["large", "deep"] {
        let response = call(url, &session, tool);
        assert!(response.contains("\"jsonrpc\""), "{tool}");
    }
    assert!(call(url, &session, "ok").contains("done"));
    let most = memory(&bridge, "VmHWM:");
    assert!(most < 1024 * 1024, "{most} KiB");
    drop(unread);
    bridge.stop();
}

/// Sessions with a program each, of clients that disconnect without ending them.
#[test]
fn a_thousand_cut_sessions_leave_no_program_and_bounded_memory() {
    const SESSIONS: usize = 1_000;
    let sandbox = Sandbox::new();
    sandbox.write("server.sh", SHELL_SERVER);
    let words = ["--server-era", "legacy", "--max-connections", "16"];
    let words = [&words[..], &["--idle", "5s", "--", "sh", "server.sh"]].concat();
    let bridge = ServeProcess::bridge(&sandbox, &words);
    let url = &bridge.address;
    let cut = |count: usize| {
        for _ in 0..count {
            open_session(url);
        }
    };
    cut(50);
    let before = memory(&bridge, "VmRSS:");

    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| cut(SESSIONS / 4));
        }
    });
    wait_for_programs(&bridge, |count| count == 0, Duration::from_secs(40));

    let more = memory(&bridge, "VmRSS:").saturating_sub(before);
    eprintln!("{more} KiB more after {SESSIONS} sessions");
    assert!(more < 32 * 1024, "{more} KiB");
    bridge.stop();
}

/// The size of an idle session that uses no upstream connection.
#[test]
fn an_idle_session_takes_little_memory() {
    const SESSIONS: usize = 4_000;
    let sandbox = Sandbox::new();
    let bridge = ServeProcess::bridge(&sandbox, &["SOCKET", "--server-era", "legacy"]);
    let rest = bridge.address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let message: Value =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let body = message.to_string();
    let mut stream = TcpStream::connect(host).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut open = |count: usize| {
        for _ in 0..count {
            let request = format!(
                "POST /{path} HTTP/1.1\r\nHost: {host}\r\n\
                 Accept: application/json, text/event-stream\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len(),
            );
            stream.write_all(request.as_bytes()).unwrap();
            let mut response = Vec::new();
            let mut buffer = [0; 4096];
            while !response.ends_with(b"}}") {
                let length = stream.read(&mut buffer).unwrap();
                assert!(length > 0);
                response.extend_from_slice(&buffer[..length]);
            }
            assert!(
                response.starts_with(b"HTTP/1.1 200"),
                "{}",
                String::from_utf8_lossy(&response)
            );
        }
    };
    open(500);
    let before = memory(&bridge, "VmRSS:");
    open(SESSIONS);
    let bytes = (memory(&bridge, "VmRSS:").saturating_sub(before)) * 1024 / SESSIONS;
    eprintln!("{bytes} bytes per session");
    assert!(bytes <= 1_536, "{bytes} bytes");
    bridge.stop();
}
