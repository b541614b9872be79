//! Tools: what is remembered about them, how they are called, and what they return.

mod calling;
mod canonical;
#[cfg(feature = "validation")]
mod checked;
mod definitions;
mod digest;
mod fingerprint;
mod known;
mod mirrored;
mod output;
mod params;
mod pinned;
#[cfg(not(feature = "validation"))]
mod unchecked;

pub use digest::{BadDigest, ToolDigest};
pub use fingerprint::ToolFingerprint;
pub(crate) use known::KnownTools;
pub use output::{StructuredError, ToolOutput};
pub(crate) use params::ToolCall;

#[cfg(not(feature = "validation"))]
use unchecked as checked;
