//! How the parts of the context server work together.

mod index;
//! What the parts of the context server do together.

mod memory;
mod secrets;
