//! The real binary against servers of ours; what it prints is pinned.
#![cfg(unix)]

mod calls;
mod configured;
mod failures;
mod http;
mod listening;
mod lists;
mod programs;
mod stage;
mod terminal;
mod weather;
