//! What people see: tables, signatures, content; and the exact JSON that programs get.
//!
//! Everything here makes strings. Colours are always in them and are taken out on the way to a stream that
//! has none; text of a peer passes [`plain`] first.

pub(crate) mod content;
pub(crate) mod json;
pub(crate) mod plain;
pub(crate) mod signature;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod wrap;
