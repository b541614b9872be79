//! Server-sent events, written and read as the HTML standard has them.

mod decode;
mod encode;

pub use decode::{Decoder, Limits, Received, TooLarge};
pub use encode::{Event, write_comment};

#[cfg(test)]
mod tests;
