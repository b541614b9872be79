//! What the parts of the context server do together.

mod index;
mod index_killed;
mod memory;
mod scale;
mod secrets;
mod surface;
mod transfer;
