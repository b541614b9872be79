//! Streams that stay open, each on a separate connection, and a change that is announced on all of them.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
    time::timeout,
};

use crate::{
    Failure,
    connection::{Call, Connection, text_of},
    message,
};

/// The notification that every listener receives.
const CHANGED: &[u8] = b"notifications/tools/list_changed";
/// The longest time until every listener has received a change.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(60);

/// The kind of stream to open.
#[derive(Clone, Debug)]
pub enum Kind {
    /// One GET stream in each of these sessions.
    General(Arc<[String]>),
    /// This many `subscriptions/listen`.
    Listen(usize),
}

/// Many open streams; they are closed when this is dropped.
#[derive(Debug)]
pub struct Streams {
    readers: JoinSet<Result<(), Failure>>,
    count: usize,
    received: watch::Receiver<usize>,
    announcer: Connection,
    /// The session that announces, if the streams belong to sessions.
    session: Option<String>,
    announced: u64,
}

impl Streams {
    /// Opens them one after the other, and waits until each is open.
    pub async fn open(address: SocketAddr, path: &str, kind: &Kind) -> Result<Streams, Failure> {
        let (sender, received) = watch::channel(0);
        let (count, session) = match kind {
            Kind::General(sessions) => (sessions.len(), sessions.first().cloned()),
            Kind::Listen(count) => (*count, None),
        };
        let mut readers = JoinSet::new();
        for index in 0..count {
            let stream = Stream::open(address, path, kind, index).await?;
            readers.spawn(stream.read(sender.clone()));
        }
        Ok(Streams {
            readers,
            count,
            received,
            announcer: Connection::open_at(address, path).await?,
            session,
            announced: 0,
        })
    }

    /// Returns the number of streams.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Makes the server announce a change of its tools; returns the time until the last stream has received it.
    pub async fn announce(&mut self) -> Result<Duration, Failure> {
        let expected = *self.received.borrow() + self.count;
        let call = Call {
            id: 1_000_000 + self.announced,
            tool: "announce",
            arguments: "{}".to_owned(),
            session: self.session.as_deref(),
        };
        self.announced += 1;
        let started = Instant::now();
        let response = self.announcer.call(&call).await?;
        let all_received = self.received.wait_for(|received| *received >= expected);
        match timeout(ANNOUNCE_TIMEOUT, all_received).await {
            Ok(received) => drop(received?),
            Err(_) => return Err("not everyone who listens was told".into()),
        }
        let took = started.elapsed();
        if text_of(&response, call.id)? != "told" {
            return Err(format!("wrong response: {response:.300}").into());
        }
        match self.readers.try_join_next() {
            Some(ended) => Err(ended?.err().unwrap_or("a stream ended".into())),
            None => Ok(took),
        }
    }
}

/// One open stream.
struct Stream {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Stream {
    async fn open(
        address: SocketAddr,
        path: &str,
        kind: &Kind,
        index: usize,
    ) -> Result<Stream, Failure> {
        let connection = Connection::open(address).await?;
        let host = connection.host();
        let (request, sign) = match kind {
            Kind::General(sessions) => {
                let headers = message::session_headers(Some(&sessions[index]));
                (message::get(path, host, &headers), &b"\r\n\r\n"[..])
            }
            Kind::Listen(_) => {
                let body = message::listen(index as u64 + 1);
                let request = message::post_to(path, host, &message::listen_headers(), &body);
                (request, &b"notifications/subscriptions/acknowledged"[..])
            }
        };
        let mut stream = Stream {
            stream: connection.into_stream(),
            received: Vec::with_capacity(512),
        };
        stream.stream.write_all(&request).await?;
        while !stream.takes(sign) {
            stream.receive().await?;
        }
        Ok(stream)
    }

    /// Counts announcements until the stream ends.
    async fn read(mut self, received: watch::Sender<usize>) -> Result<(), Failure> {
        loop {
            while self.takes(CHANGED) {
                received.send_modify(|received| *received += 1);
            }
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> Result<(), Failure> {
        if self.stream.read_buf(&mut self.received).await? > 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.received);
        Err(format!("a stream ended with {text:.300}").into())
    }

    /// Drops everything up to the end of `sign`, if the buffer contains it.
    fn takes(&mut self, sign: &[u8]) -> bool {
        let position = self.received.windows(sign.len()).position(|at| at == sign);
        if let Some(position) = position {
            self.received.drain(..position + sign.len());
        }
        position.is_some()
    }
}
