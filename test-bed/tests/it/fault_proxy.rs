use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use turnbuckle_test_bed::{FaultProxy, NetworkFault};

/// Starts a server that sends every byte back and reports it.
fn echo() -> (SocketAddr, Receiver<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let seen = seen.clone();
            thread::spawn(move || echo_connection(stream.unwrap(), &seen));
        }
    });
    (address, received)
}

fn echo_connection(mut stream: TcpStream, seen: &Sender<u8>) {
    let mut byte = [0];
    while matches!(stream.read(&mut byte), Ok(1)) {
        // The test may have ended.
        let _ = seen.send(byte[0]);
        if stream.write_all(&byte).is_err() {
            return;
        }
    }
}

fn read_byte(stream: &mut TcpStream) -> Result<u8, ErrorKind> {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(1) => Ok(byte[0]),
        Ok(_) => Err(ErrorKind::UnexpectedEof),
        Err(error) => Err(error.kind()),
    }
}

#[test]
fn bytes_pass_in_both_directions() {
    let (server, _seen) = echo();
    let proxy = FaultProxy::start(server).unwrap();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.write_all(b"x").unwrap();
    assert_eq!(read_byte(&mut client), Ok(b'x'));
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn held_bytes_arrive_after_the_hold() {
    let (server, seen) = echo();
    let proxy = FaultProxy::start(server).unwrap();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.write_all(b"a").unwrap();
    assert_eq!(read_byte(&mut client), Ok(b'a'));
    assert_eq!(seen.recv(), Ok(b'a'));

    proxy.set(NetworkFault::Hold);
    client.write_all(b"b").unwrap();
    // A new connection is held, too. Another proxy shows that the server has had time to see the byte.
    let mut second = TcpStream::connect(proxy.address()).unwrap();
    second.write_all(b"c").unwrap();
    let other = FaultProxy::start(server).unwrap();
    let mut direct = TcpStream::connect(other.address()).unwrap();
    direct.write_all(b"d").unwrap();
    assert_eq!(read_byte(&mut direct), Ok(b'd'));
    assert_eq!(seen.recv(), Ok(b'd'));
    assert!(seen.try_recv().is_err());

    proxy.set(NetworkFault::None);
    assert_eq!(read_byte(&mut client), Ok(b'b'));
    assert_eq!(read_byte(&mut second), Ok(b'c'));
}

#[test]
fn reset_ends_open_and_new_connections() {
    let (server, _seen) = echo();
    let proxy = FaultProxy::start(server).unwrap();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.write_all(b"x").unwrap();
    assert_eq!(read_byte(&mut client), Ok(b'x'));

    proxy.set(NetworkFault::Reset);
    assert_eq!(read_byte(&mut client), Err(ErrorKind::ConnectionReset));
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    assert_eq!(read_byte(&mut client), Err(ErrorKind::ConnectionReset));

    proxy.set(NetworkFault::None);
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.write_all(b"y").unwrap();
    assert_eq!(read_byte(&mut client), Ok(b'y'));
}

#[test]
fn lost_response_was_caused_by_a_request_that_arrived() {
    let (server, seen) = echo();
    let proxy = FaultProxy::start(server).unwrap();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    proxy.set(NetworkFault::LoseResponses);
    client.write_all(b"x").unwrap();
    assert_eq!(read_byte(&mut client), Err(ErrorKind::ConnectionReset));
    assert_eq!(seen.recv(), Ok(b'x'));
}

#[test]
fn connection_is_cut_after_a_number_of_bytes() {
    let (server, _seen) = echo();
    let proxy = FaultProxy::start(server).unwrap();
    for _ in 0..2 {
        proxy.set(NetworkFault::CutAfter(3));
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        for byte in *b"abc" {
            client.write_all(&[byte]).unwrap();
            assert_eq!(read_byte(&mut client), Ok(byte));
        }
        client.write_all(b"d").unwrap();
        assert_eq!(read_byte(&mut client), Err(ErrorKind::ConnectionReset));
    }
}

#[test]
fn delay_applies_to_both_directions() {
    const DELAY: Duration = Duration::from_millis(30);
    let (server, _seen) = echo();
    let proxy = FaultProxy::start(server).unwrap();
    proxy.set(NetworkFault::Delay(DELAY));
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    let started = Instant::now();
    client.write_all(b"x").unwrap();
    assert_eq!(read_byte(&mut client), Ok(b'x'));
    assert!(started.elapsed() >= 2 * DELAY);
}

#[test]
fn dropped_proxy_ends_its_connections() {
    let (server, _seen) = echo();
    let proxy = FaultProxy::start(server).unwrap();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.write_all(b"x").unwrap();
    assert_eq!(read_byte(&mut client), Ok(b'x'));
    drop(proxy);
    assert!(read_byte(&mut client).is_err());
}
