//! Tests of the client through its public interface.

mod calls;
mod own_server;
