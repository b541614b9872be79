//! What the parts of the context server do together.

mod index;
mod memory;
mod scale;
mod secrets;
mod surface;
mod transfer;
