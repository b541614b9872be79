//! The requirements of the specification as data, and which tests prove them.
//!
//! A test says what it proves with [`req!`], and the helpers that open its sessions say in which revisions it did so
//! ([`ran_in`], [`saw_message`]). `./test coverage` then counts a requirement as covered if tests that claim it ran and passed in
//! every revision that it names.
//!
//! - [`table`]: the rows of `spec/requirements.csv`.
//! - [`claim`]: how a running test says which rows it proves.
//! - [`report`]: which tests passed, read from nextest's report.
//! - [`coverage`]: the figures made of all three.
//! - [`side`]: whom a row binds, and whose half a test proves.
//! - [`gate`]: every duty of a side is proven, or listed in `spec/not-proven.csv` with its reason.
//!
//! Depends on nothing, so that every crate can afford it in its tests.

pub mod claim;
pub mod coverage;
pub mod gate;
pub mod report;
pub mod side;
pub mod table;

pub use claim::{ran_in, saw_message};
pub use table::Requirement;

/// Claims that the running test proves the requirements with these ids.
///
/// The claim counts in the revisions that the test speaks, as the helpers record them that it opens sessions with. A test that
/// speaks none, for example one of a table of types, names them itself.
///
/// Panics if an id is not in `spec/requirements.csv`, so that a misspelt claim fails its test.
///
/// ```
/// use turnbuckle_ledger::req;
///
/// req!("base.jsonrpc.conform");
/// req!("base.components.legacy", "base.components.modern");
/// req!("base.components.legacy", in: ["2025-06-18", "2025-11-25"]);
/// ```
#[macro_export]
macro_rules! req {
    ($($id:literal),+, in: $revisions:expr) => { $( $crate::claim::record_in($id, &$revisions); )+ };
    ($($id:expr),+ $(,)?) => { $( $crate::claim::record($id); )+ };
}
