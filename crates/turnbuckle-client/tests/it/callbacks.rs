//! Requests of a server that callbacks handle.

mod elicitation;
mod roots;
mod sampling;
