//! Shared by the fuzz targets: a server with every feature, a paused clock, and peers that check
//! whatever comes back.
//!
//! An input is a text where that is possible, so that seeds can be written and findings read. What only the server
//! knows (ids, sealed state, cursors) an input names by a [mark](marks::Marks).

pub mod bounded;
pub mod line_peer;
pub mod marks;
pub mod offer;
pub mod response;
