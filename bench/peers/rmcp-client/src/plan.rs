//! The command line of a measured client.

use std::error::Error;

/// An error of a program that is only measured.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The parsed command line.
pub struct Plan {
    /// The server to call.
    pub server: Server,
    /// The era of the calls.
    pub era: Era,
    /// The number of calls in all.
    pub calls: u64,
    /// The number of callers; each waits for its response before it calls again.
    pub at_once: u64,
    /// The message to echo.
    pub message: String,
}

/// The address of the server.
pub enum Server {
    /// At a URL.
    Url(String),
    /// A child process on stdio: its command line.
    Child(String),
}

/// The era of a call.
#[derive(Clone, Copy)]
pub enum Era {
    /// A handshake, then calls that belong to its session.
    Legacy,
    /// Every call on its own.
    Modern,
}

impl Plan {
    /// Reads the arguments of this process.
    pub fn from_process() -> Result<Plan, Failure> {
        let (mut server, mut era) = (None, Era::Modern);
        let (mut calls, mut at_once, mut bytes) = (1_000, 1, 50);
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or("an option lacks its value")?;
            match (&*name, &*value) {
                ("--url", _) => server = Some(Server::Url(value)),
                ("--stdio", _) => server = Some(Server::Child(value)),
                ("--era", "legacy") => era = Era::Legacy,
                ("--era", "modern") => era = Era::Modern,
                ("--calls", _) => calls = value.parse()?,
                ("--at-once", _) => at_once = value.parse()?,
                ("--message", _) => bytes = value.parse()?,
                _ => return Err(format!("unknown argument `{name} {value}`").into()),
            }
        }
        Ok(Plan {
            server: server.ok_or("`--url` or `--stdio` is needed")?,
            era,
            calls,
            at_once,
            message: text(bytes),
        })
    }

    /// Returns how many calls each caller makes; together they make all of them.
    pub fn shares(&self) -> impl Iterator<Item = u64> + use<> {
        let (calls, callers) = (self.calls, self.at_once);
        (0..callers).map(move |caller| calls / callers + u64::from(caller < calls % callers))
    }
}

/// Returns the text of that many bytes that every measured client sends: a newline after every 90 bytes.
fn text(bytes: usize) -> String {
    let sentence = b"the quick brown fox jumps over the lazy dog, ";
    let letter = |position: usize| match position % 91 {
        90 => '\n',
        _ => char::from(sentence[position % sentence.len()]),
    };
    (0..bytes).map(letter).collect()
}
