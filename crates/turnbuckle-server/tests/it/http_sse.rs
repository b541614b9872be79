//! HTTP+SSE, the transport of revision 2024-11-05.

mod access;
mod messages;
mod session_end;
pub(crate) mod test_client;
