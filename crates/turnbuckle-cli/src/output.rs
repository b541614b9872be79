//! Formats results: tables, signatures and content for people, JSON for programs.
//!
//! All functions return strings. Styles are always included, and removed for streams that do not support them. Text
//! of a peer is sanitized first: see [`sanitize`].

pub(crate) mod content;
pub(crate) mod json;
pub(crate) mod sanitize;
pub(crate) mod signature;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod wrap;
