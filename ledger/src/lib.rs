//! The requirements of the specification as data, and which tests prove them.
//!
//! A test says what it proves with [`req!`]. `./test coverage` then counts a requirement as covered
//! if a test that claims it ran and passed.
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

pub use table::Requirement;

/// Claims that the running test proves the requirements with these ids.
///
/// Panics if an id is not in `spec/requirements.csv`, so that a misspelt claim fails its test.
///
/// ```
/// use turnbuckle_ledger::req;
///
/// req!("base.jsonrpc.conform");
/// req!("base.components.legacy", "base.components.modern");
/// ```
#[macro_export]
macro_rules! req {
    ($($id:expr),+ $(,)?) => { $( $crate::claim::record($id); )+ };
}
