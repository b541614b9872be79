//! The listener of `--metrics`: the text format of Prometheus over HTTP.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use turnbuckle_gateway::RunningGateway;

use crate::{
    error::{CliError, Result},
    lock,
};

/// Maximum size of a request.
const MAX_REQUEST_BYTES: usize = 8 * 1024;
/// Maximum duration of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of requests at the same time.
const MAX_REQUESTS: usize = 8;

/// A listener that serves the metrics of the gateway that was started last.
pub(super) struct MetricsListener {
    gateway: Arc<Mutex<Option<RunningGateway>>>,
}

impl MetricsListener {
    /// Listens on a loopback address. Metrics name servers and methods, and callers are not authenticated.
    pub(super) async fn bind(address: SocketAddr) -> Result<Self> {
        if !address.ip().is_loopback() {
            return Err(CliError::could_not_run(format!(
                "--metrics listens on loopback addresses only, not on {address}"
            )));
        }
        let listener = TcpListener::bind(address).await.map_err(|error| {
            CliError::could_not_run(format!("cannot serve metrics on {address}: {error}"))
        })?;
        let gateway = Arc::new(Mutex::new(None));
        tokio::spawn(accept(listener, Arc::clone(&gateway)));
        Ok(Self { gateway })
    }

    /// Serves the metrics of a gateway.
    pub(super) fn serve(&self, gateway: &RunningGateway) {
        *lock(&self.gateway) = Some(gateway.clone());
    }
}

impl fmt::Debug for MetricsListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetricsListener")
    }
}

async fn accept(listener: TcpListener, gateway: Arc<Mutex<Option<RunningGateway>>>) {
    let permits = Arc::new(Semaphore::new(MAX_REQUESTS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // No file descriptors, for example.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            let _permit = permit;
            let _ = tokio::time::timeout(TIMEOUT, respond(stream, &gateway)).await;
        });
    }
}

/// Responds to one request, and closes the connection.
async fn respond(
    mut stream: TcpStream,
    gateway: &Mutex<Option<RunningGateway>>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut part).await?;
        if count == 0 || request.len() + count > MAX_REQUEST_BYTES {
            return Ok(());
        }
        request.extend_from_slice(&part[..count]);
    }
    let metrics = lock(gateway).as_ref().map(RunningGateway::metrics);
    let response = match (path(&request), metrics) {
        (Some("/metrics"), Some(metrics)) => response("200 OK", &metrics.to_string()),
        (Some("/metrics"), None) => response("503 Service Unavailable", "starting\n"),
        (Some(_), _) => response("404 Not Found", "the metrics are at /metrics\n"),
        (None, _) => response("405 Method Not Allowed", "use GET\n"),
    };
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

/// Returns the path of a GET request.
fn path(request: &[u8]) -> Option<&str> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let path = words
        .next()
        .filter(|method| *method == "GET")
        .and(words.next())?;
    path.split('?').next()
}

fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_a_get_request_counts() {
        assert_eq!(path(b"GET /metrics?x=1 HTTP/1.1\r\n\r\n"), Some("/metrics"));
        assert_eq!(path(b"POST /metrics HTTP/1.1\r\n\r\n"), None);
        assert_eq!(path(b"GET"), None);
        assert_eq!(path(b"\xff\r\n\r\n"), None);
    }

    #[tokio::test]
    async fn other_machines_cannot_read_metrics() {
        let bound = MetricsListener::bind("0.0.0.0:0".parse().unwrap()).await;
        assert!(bound.is_err());
    }
}
