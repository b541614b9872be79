//! Tools: what is remembered about them, how they are called, and what they return.

mod calling;
#[cfg(feature = "validation")]
mod checked;
mod known;
mod mirrored;
mod output;
#[cfg(not(feature = "validation"))]
mod unchecked;

pub(crate) use known::KnownTools;
pub use output::{StructuredError, ToolOutput};

#[cfg(not(feature = "validation"))]
use unchecked as checked;
