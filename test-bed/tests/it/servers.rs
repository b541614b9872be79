use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
    thread,
};

use turnbuckle_test_bed::{HaProxy, PostgresServer, RedisCluster, RedisSentinel, RedisServer};

#[test]
fn redis_is_empty_after_a_restart_without_persistence() {
    let mut redis = RedisServer::start().unwrap();
    assert_eq!(redis.command(&["SET", "key", "value"]).unwrap(), "OK");
    assert_eq!(redis.command(&["GET", "key"]).unwrap(), "value");

    redis.restart().unwrap();
    assert_eq!(redis.command(&["GET", "key"]).unwrap(), "");
}

#[test]
fn redis_keeps_its_keys_over_a_kill_with_an_append_only_file() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut redis = RedisServer::start_with(&arguments).unwrap();
    redis.command(&["SET", "key", "value"]).unwrap();
    redis.kill().unwrap();
    assert!(redis.command(&["PING"]).is_err());

    redis.restart().unwrap();
    assert_eq!(redis.command(&["GET", "key"]).unwrap(), "value");
}

#[test]
fn error_reply_of_redis_is_an_error() {
    let redis = RedisServer::start().unwrap();
    let error = redis.command(&["INCR"]).unwrap_err().to_string();
    assert!(error.contains("wrong number of arguments"), "{error}");
}

#[test]
fn server_that_cannot_start_is_reported_with_its_log() {
    let error = RedisServer::start_with(&["--no-such-setting", "1"]).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("did not start"), "{error}");
    assert!(error.contains("no-such-setting"), "{error}");
}

#[test]
fn sentinels_make_the_replica_primary() {
    let mut group = RedisSentinel::start().unwrap();
    assert_eq!(group.sentinels().len(), 3);
    let before = group.primary().unwrap();
    let replicated = |group: &mut RedisSentinel, address| {
        let server = group.server_at(address).unwrap();
        server.command(&["SET", "key", "value"]).unwrap();
        server.command(&["WAIT", "1", "60000"]).unwrap()
    };
    assert_eq!(replicated(&mut group, before), "1");

    let after = group.fail_over().unwrap();
    assert_ne!(after, before);
    let server = group.server_at(after).unwrap();
    assert_eq!(server.command(&["GET", "key"]).unwrap(), "value");
    assert_eq!(server.command(&["SET", "key", "new"]).unwrap(), "OK");
}

#[test]
fn cluster_refuses_a_key_at_the_wrong_node() {
    let mut cluster = RedisCluster::start().unwrap();
    assert_eq!(cluster.addresses().len(), 3);
    let answers: Vec<_> = cluster
        .nodes()
        .iter()
        .map(|node| node.command(&["SET", "key", "value"]))
        .collect();
    let stored = answers.iter().flatten().filter(|answer| *answer == "OK");
    assert_eq!(stored.count(), 1, "{answers:?}");
    let moved = answers
        .iter()
        .filter_map(|answer| answer.as_ref().err())
        .filter(|error| error.to_string().contains("MOVED"));
    assert_eq!(moved.count(), 2, "{answers:?}");
}

#[test]
fn postgres_keeps_committed_rows_over_a_kill() {
    let mut postgres = PostgresServer::start().unwrap();
    let statements = "CREATE TABLE note (line text); INSERT INTO note VALUES ('kept')";
    postgres.execute(statements).unwrap();
    postgres.kill().unwrap();
    assert!(postgres.execute("SELECT 1").is_err());

    postgres.restart().unwrap();
    assert_eq!(postgres.execute("SELECT line FROM note").unwrap(), "kept");
    let error = postgres.execute("SELECT nothing").unwrap_err().to_string();
    assert!(error.contains("nothing"), "{error}");
}

#[test]
fn balancer_alternates_and_leaves_out_servers_that_are_not_ready() {
    let ready = [respond("200 OK", "a"), respond("200 OK", "b")];
    let balancer = HaProxy::start(&ready, None).unwrap();
    let bodies: Vec<_> = (0..4).map(|_| get(balancer.address())).collect();
    assert_eq!(bodies, ["a", "b", "a", "b"]);

    let one_ready = [
        respond("503 Service Unavailable", "a"),
        respond("200 OK", "b"),
    ];
    let balancer = HaProxy::start(&one_ready, Some("/readyz")).unwrap();
    // The first check may not have happened when the balancer accepts its first request.
    while get(balancer.address()) == "a" {}
    let bodies: Vec<_> = (0..4).map(|_| get(balancer.address())).collect();
    assert_eq!(bodies, ["b"; 4]);
}

#[test]
fn servers_end_with_a_killed_test() {
    const ROLE: &str = "TEST_BED_CHILD";
    if std::env::var_os(ROLE).is_some() {
        let redis = RedisServer::start().unwrap();
        println!("address={}", redis.address());
        loop {
            thread::park();
        }
    }
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program)
        .args(["--exact", "servers::servers_end_with_a_killed_test"])
        .arg("--nocapture")
        .env(ROLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let address = read_address(child.stdout.as_mut().unwrap());
    let pid = pid_of_listener(address);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));

    // The kernel sends the signal; the process may still be ending.
    while is_running(pid) {
        thread::yield_now();
    }
}

fn read_address(output: &mut impl Read) -> SocketAddr {
    let mut printed = String::new();
    let mut byte = [0];
    loop {
        output.read_exact(&mut byte).unwrap();
        printed.push(char::from(byte[0]));
        if let Some((_, address)) = printed.split_once("address=")
            && let Some(address) = address.strip_suffix('\n')
        {
            return address.parse().unwrap();
        }
    }
}

fn pid_of_listener(address: SocketAddr) -> u32 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"INFO server\r\nQUIT\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix("process_id:"));
    line.unwrap().trim().parse().unwrap()
}

/// Returns false for a zombie, too.
fn is_running(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status
        .rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Starts an HTTP server that gives every request the same response.
fn respond(status: &'static str, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_head(&mut stream);
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            // The balancer closes the connection of a health check early.
            drop(stream.write_all((head + body).as_bytes()));
        }
    });
    address
}

fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
}

fn get(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}
