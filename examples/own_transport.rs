//! A custom transport: newline-delimited JSON over TCP.
//!
//! Any pair of byte streams can carry the protocol. All connections use the same server.
//!
//! ```console
//! $ cargo example own_transport
//! listening on 127.0.0.1:9000
//! ```
//!
//! With `--check` it listens on a free port, sends requests to itself and prints the responses.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::{error::Error, net::SocketAddr};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use turnbuckle::{Server, Tool};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let check = std::env::args().any(|argument| argument == "--check");
    let listener = TcpListener::bind(if check {
        "127.0.0.1:0"
    } else {
        "127.0.0.1:9000"
    })
    .await?;
    let address = listener.local_addr()?;
    println!("listening on {address}");
    tokio::select! {
        stopped = accept(listener, clock()) => stopped,
        checked = call_server(address), if check => checked,
    }
}

fn clock() -> Server {
    let started = std::time::Instant::now();
    Server::new("clock", "1.0.0").tool(
        Tool::new("uptime", move || async move {
            Ok(format!("{} s", started.elapsed().as_secs()))
        })
        .description("Tells how long the server has been running"),
    )
}

/// The transport: one call of `ndjson::serve` per connection. Clones of a server share everything.
async fn accept(listener: TcpListener, server: Server) -> Result<(), Box<dyn Error>> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let server = server.clone();
        tokio::spawn(async move {
            if let Err(error) = turnbuckle::ndjson::serve(reader, writer, server).await {
                println!("a connection broke: {error}");
            }
        });
    }
}

/// A minimal client: sends requests and prints the responses.
async fn call_server(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let requests = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"uptime","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ];
    let (reader, mut writer) = TcpStream::connect(address).await?.into_split();
    let mut answers = BufReader::new(reader).lines();
    for request in requests {
        writer.write_all(format!("{request}\n").as_bytes()).await?;
        let answer = answers.next_line().await?.ok_or("the server hung up")?;
        println!("{answer}");
        if !answer.contains(r#""result""#) {
            return Err("this is not a result".into());
        }
    }
    Ok(())
}
