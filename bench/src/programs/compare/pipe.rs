//! A server connected by two pipes; reading and writing block.

use std::{
    collections::HashSet,
    io::{Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use turnbuckle_bench::{
    Failure,
    cores::Cores,
    message::{self, Era},
    process::{Memory, cpu_time},
};

use super::drive::DriveResult;

/// The number of bytes of one read.
const CHUNK: usize = 64 * 1024;

/// A running stdio server; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Pipe {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Bytes that were read and not consumed yet.
    received: Vec<u8>,
    chunk: Box<[u8]>,
}

impl Pipe {
    /// Starts a server without sending anything.
    pub(crate) fn open(command: &mut Command, places: Cores) -> Result<Pipe, Failure> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = places.spawn(command)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Ok(Pipe {
            child,
            input: input.expect("stdin was requested"),
            output: output.expect("stdout was requested"),
            received: Vec::with_capacity(CHUNK),
            chunk: vec![0; CHUNK].into(),
        })
    }

    /// Sends the handshake, if the era has one.
    pub(crate) fn handshake(&mut self, era: Era) -> Result<(), Failure> {
        match era {
            Era::Modern => Ok(()),
            Era::Legacy => {
                self.initialize()?;
                self.send(format!("{}\n", message::INITIALIZED).as_bytes())
            }
        }
    }

    /// Sends the first message of a session, and waits for its response.
    pub(crate) fn initialize(&mut self) -> Result<(), Failure> {
        self.send(format!("{}\n", message::INITIALIZE).as_bytes())?;
        let response = self.line()?;
        let value: serde_json::Value = serde_json::from_slice(&response).unwrap_or_default();
        match value["result"]["protocolVersion"].as_str() {
            Some(_) => Ok(()),
            None => Err(wrong(&response)),
        }
    }

    /// Writes all of it.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.input.write_all(bytes)?)
    }

    /// Waits for the next line, and returns it without its line end.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.received) {
                let line = self.received[..end].to_vec();
                self.received.drain(..=end);
                return Ok(line);
            }
            self.receive()?;
        }
    }

    /// Reads the CPU time of the server.
    pub(crate) fn cpu(&self) -> Result<Duration, Failure> {
        cpu_time(self.child.id())
    }

    /// Reads the memory of the server.
    pub(crate) fn memory(&self) -> Result<Memory, Failure> {
        Memory::read(self.child.id())
    }

    fn receive(&mut self) -> Result<(), Failure> {
        match self.output.read(&mut self.chunk)? {
            0 => Err("the server ended its output".into()),
            length => {
                self.received.extend_from_slice(&self.chunk[..length]);
                Ok(())
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls of `echo` with a fixed number in flight.
#[derive(Debug)]
pub(crate) struct Calls {
    /// A call, before and after its id.
    around_id: (String, String),
    text: String,
    next: u64,
    open: HashSet<u64>,
    to_send: Vec<u8>,
}

impl Calls {
    /// Prepares calls with a message of this many bytes.
    pub(crate) fn new(era: Era, bytes: usize) -> Calls {
        let text = message::text(bytes);
        let call = message::call(era, 0, "echo", &format!(r#"{{"message":"{text}"}}"#));
        let (before, after) = call.split_once(r#""id":0"#).expect("a call has an id");
        Calls {
            around_id: (format!(r#"{before}"id":"#), format!("{after}\n")),
            text,
            next: 1,
            open: HashSet::new(),
            to_send: Vec::new(),
        }
    }

    /// Keeps `in_flight` calls in flight for a time. At the end none is left.
    ///
    /// The latency of a response is the time of the read in which it arrived; with one call in flight that is its own.
    pub(crate) fn run(
        &mut self,
        pipe: &mut Pipe,
        in_flight: usize,
        time: Duration,
    ) -> Result<DriveResult, Failure> {
        let mut latencies = Vec::with_capacity(1 << 16);
        let mut now = Instant::now();
        let until = now + time;
        loop {
            if now < until {
                self.send(pipe, in_flight - self.open.len())?;
            }
            if self.open.is_empty() {
                return Ok(DriveResult::from_latencies(latencies));
            }
            let responses = self.read_responses(pipe)?;
            let turn = now.elapsed();
            now += turn;
            latencies.extend(std::iter::repeat_n(turn.as_secs_f64() * 1e6, responses));
        }
    }

    /// Writes that many calls at once.
    fn send(&mut self, pipe: &mut Pipe, calls: usize) -> Result<(), Failure> {
        self.to_send.clear();
        for _ in 0..calls {
            self.open.insert(self.next);
            let (before, after) = &self.around_id;
            write!(self.to_send, "{before}{}{after}", self.next)?;
            self.next += 1;
        }
        pipe.send(&self.to_send)
    }

    /// Reads once, and checks every complete response.
    fn read_responses(&mut self, pipe: &mut Pipe) -> Result<usize, Failure> {
        pipe.receive()?;
        let (mut from, mut responses) = (0, 0);
        while let Some(length) = memchr::memchr(b'\n', &pipe.received[from..]) {
            let line = &pipe.received[from..from + length];
            let is_right = memchr::memmem::find(line, self.text.as_bytes()).is_some();
            if !id(line).is_some_and(|id| is_right && self.open.remove(&id)) {
                return Err(wrong(line));
            }
            (from, responses) = (from + length + 1, responses + 1);
        }
        pipe.received.drain(..from);
        Ok(responses)
    }
}

/// Returns the id of a response.
fn id(line: &[u8]) -> Option<u64> {
    const NAME: &[u8] = br#""id":"#;
    let digits = line[memchr::memmem::find(line, NAME)? + NAME.len()..].trim_ascii_start();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

fn wrong(response: &[u8]) -> Failure {
    format!("wrong response: {:.300}", String::from_utf8_lossy(response)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends every call back as its own response.
    fn echo_process() -> Pipe {
        Pipe::open(&mut Command::new("cat"), Cores::take().unwrap()).unwrap()
    }

    #[test]
    fn every_call_has_a_response_before_a_run_ends() {
        let (mut pipe, mut calls) = (echo_process(), Calls::new(Era::Modern, 50));

        let driven = calls.run(&mut pipe, 64, Duration::from_millis(20));

        let answered = driven.unwrap().answered;
        assert!(answered >= 64, "{answered}");
        assert_eq!(calls.next, answered + 1);
        assert!(calls.open.is_empty());
    }

    #[test]
    fn unexpected_response_is_an_error() {
        let (mut pipe, mut calls) = (echo_process(), Calls::new(Era::Legacy, 50));
        calls.send(&mut pipe, 1).unwrap();
        calls.open.clear();

        let error = calls.read_responses(&mut pipe).unwrap_err();

        assert!(error.to_string().starts_with("wrong response"), "{error}");
    }

    #[test]
    fn finds_the_id_of_a_response() {
        assert_eq!(id(br#"{"jsonrpc":"2.0","id":17,"result":{}}"#), Some(17));
        assert_eq!(id(br#"{"result":{}, "id": 3}"#), Some(3));
        assert_eq!(id(br#"{"id":"a"}"#), None);
    }
}
