//! How the parts of the context server work together.

mod index;
