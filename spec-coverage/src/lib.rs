//! The requirements of the specification as data, and which tests prove them.
//!
//! A test claims requirements with [`req!`]; the helpers that open its sessions record the revisions ([`ran_in`],
//! [`saw_message`]). `./test coverage` then counts a requirement as covered if tests that claim it ran and passed in
//! every revision that it names.
//!
//! - [`table`]: the rows of `spec/requirements.csv`.
//! - [`claim`]: records the claims of a running test.
//! - [`report`]: reads which tests passed from nextest's report.
//! - [`coverage`]: the figures.
//! - [`side`]: the side that a requirement binds and a test proves.
//! - [`coverage_gate`]: every mandatory requirement of a side is proven, or listed in `spec/not-proven.csv` with its reason.
//!
//! Without dependencies, so every crate can use it in its tests.

pub mod claim;
pub mod coverage;
pub mod coverage_gate;
pub mod report;
pub mod side;
pub mod table;

pub use claim::{ran_in, saw_message};
pub use table::Requirement;

/// Claims that the running test proves the requirements with these ids.
///
/// The claim counts in the revisions that the helpers of the test record. A test that opens no session, for example one of a table
/// of types, names the revisions itself.
///
/// Panics if an id is not in `spec/requirements.csv`, so that a misspelt claim fails its test.
///
/// ```
/// use turnbuckle_spec_coverage::req;
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
