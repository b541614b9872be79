//! Tests of the client through its public interface.

mod calls;
mod listening;
mod own_server;
