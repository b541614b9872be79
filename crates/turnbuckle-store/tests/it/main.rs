//! The suite that every store must pass, run against the one in memory.

mod memory;
