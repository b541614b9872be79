//! The process that a client on stdio starts as its server: it carries bytes to the checker that plays the server.

use std::io;

use tokio::{
    io::{AsyncWriteExt, copy, stdin, stdout},
    net::TcpStream,
};

/// Carries standard input to an address and back to standard output, until either side ends.
///
/// # Errors
///
/// If nobody listens at the address.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O enabled.
pub async fn stdio_bridge(address: &str) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut from_checker, mut to_checker) = stream.into_split();
    let there = async move {
        let copied = copy(&mut stdin(), &mut to_checker).await;
        // The checker is to see that the client has closed our input.
        let _ = to_checker.shutdown().await;
        copied
    };
    let there = tokio::spawn(there);
    let mut out = stdout();
    copy(&mut from_checker, &mut out).await?;
    out.flush().await?;
    // A read of standard input cannot be given up, and nobody needs what it would bring.
    there.abort();
    Ok(())
}
