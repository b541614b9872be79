//! What the parts of the context server do together.

mod index;
mod memory;
mod secrets;
mod surface;
