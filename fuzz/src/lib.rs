//! Shared by the fuzz targets: a server with every feature, a paused clock, and peers that check
//! every response.
//!
//! An input is a text where that is possible, so that seeds can be written and findings read. An input refers to
//! values of the server (ids, sealed state, cursors) by a [mark](marks::Marks).

pub mod bounded;
pub mod full_server;
pub mod line_peer;
pub mod marks;
pub mod response;
