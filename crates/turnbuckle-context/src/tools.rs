//! The tools, a file for each family.

pub mod debug;
