//! What the parts of the context server do together.

mod memory;
mod secrets;
mod surface;
