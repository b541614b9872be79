//! Sends the same request repeatedly over some connections, each as soon as its response has arrived.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use turnbuckle_bench::{Failure, response::Response};

/// The responses received during a drive.
#[derive(Debug, Default)]
pub(crate) struct DriveResult {
    pub(crate) answered: u64,
    /// The latency of each response, in microseconds, sorted.
    latencies: Vec<f64>,
}

impl DriveResult {
    /// Creates it from latencies in microseconds.
    pub(crate) fn from_latencies(mut latencies: Vec<f64>) -> DriveResult {
        latencies.sort_by(f64::total_cmp);
        DriveResult {
            answered: latencies.len() as u64,
            latencies,
        }
    }

    /// Returns the latency at this quantile.
    pub(crate) fn latency(&self, share: f64) -> f64 {
        let at = (self.latencies.len() as f64 * share) as usize;
        let last = self.latencies.len().saturating_sub(1);
        self.latencies
            .get(at.min(last))
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// A connection that has been shown to work.
#[derive(Debug)]
pub(crate) struct Lane {
    stream: TcpStream,
    request: Vec<u8>,
    received: Vec<u8>,
}

impl Lane {
    /// Connects, sends the request once and checks the response.
    pub(crate) async fn open(
        address: SocketAddr,
        request: Vec<u8>,
        is_right: impl Fn(&str) -> bool,
    ) -> Result<Lane, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut lane = Lane {
            stream,
            request,
            received: Vec::with_capacity(1 << 18),
        };
        lane.exchange().await?;
        let response = Response::take(&mut lane.received)?.ok_or("half a response")?;
        match response.response_text() {
            text if response.status == 200 && is_right(text) => Ok(lane),
            text => Err(format!("wrong response ({}): {text:.300}", response.status).into()),
        }
    }

    /// Sends the request and reads until its response is complete.
    async fn exchange(&mut self) -> Result<(), Failure> {
        self.received.clear();
        self.stream.write_all(&self.request).await?;
        let mut end = None;
        loop {
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err("the server closed the connection".into());
            }
            end = end.or_else(|| End::parse(&self.received));
            if end.is_some_and(|end| end.is_reached(&self.received)) {
                break;
            }
        }
        match self.received.get(9..12) {
            Some(b"200") => Ok(()),
            _ => Err(format!("not 200: {:.300}", String::from_utf8_lossy(&self.received)).into()),
        }
    }

    async fn run(mut self, until: Instant) -> Result<(Lane, Vec<f64>), Failure> {
        let mut latencies = Vec::with_capacity(1 << 12);
        let mut sent = Instant::now();
        while sent < until {
            self.exchange().await?;
            let answered = Instant::now();
            latencies.push((answered - sent).as_secs_f64() * 1e6);
            sent = answered;
        }
        Ok((self, latencies))
    }
}

/// The end of a response. There is never a second one behind it, since nothing is sent before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At this length.
    At(usize),
    /// After the chunk of length 0.
    LastChunk,
}

impl End {
    /// Reads the head; `None` while it is not complete.
    fn parse(received: &[u8]) -> Option<End> {
        let head = memchr::memmem::find(received, b"\r\n\r\n")?;
        for line in received[..head].split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                let length: usize = std::str::from_utf8(value).ok()?.parse().ok()?;
                return Some(End::At(head + 4 + length));
            }
        }
        Some(End::LastChunk)
    }

    fn is_reached(self, received: &[u8]) -> bool {
        match self {
            End::At(length) => received.len() >= length,
            End::LastChunk => received.ends_with(b"\r\n0\r\n\r\n"),
        }
    }
}

/// Drives all connections at once for a time, and returns them.
pub(crate) async fn drive(
    lanes: Vec<Lane>,
    time: Duration,
) -> Result<(Vec<Lane>, DriveResult), Failure> {
    let until = Instant::now() + time;
    let mut running = JoinSet::new();
    for lane in lanes {
        running.spawn(lane.run(until));
    }
    let (mut lanes, mut all) = (Vec::new(), Vec::new());
    while let Some(ended) = running.join_next().await {
        let (lane, latencies) = ended??;
        lanes.push(lane);
        all.extend(latencies);
    }
    Ok((lanes, DriveResult::from_latencies(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_where_its_head_says() {
        let counted = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";

        assert_eq!(End::parse(b"HTTP/1.1 200 OK\r\ncontent-"), None);
        let end = End::parse(counted).unwrap();
        assert!(end.is_reached(counted) && !end.is_reached(&counted[..counted.len() - 1]));
        let end = End::parse(chunked).unwrap();
        assert!(end.is_reached(chunked) && !end.is_reached(&chunked[..chunked.len() - 1]));
    }

    #[test]
    fn latency_is_taken_from_the_sorted_responses() {
        let driven = DriveResult::from_latencies((0..100).rev().map(f64::from).collect());

        assert_eq!(driven.latency(0.5), 50.0);
        assert_eq!(driven.latency(0.99), 99.0);
        assert!(DriveResult::default().latency(0.5).is_nan());
    }
}
