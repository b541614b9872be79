//! A look at the messages as they pass.

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

/// One message that passes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Traffic<'a> {
    /// Which way it goes.
    pub direction: Direction,
    /// The message as it is on the wire; not necessarily JSON, if the server sends something else.
    pub message: &'a str,
}
