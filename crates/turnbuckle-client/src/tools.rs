//! Tools: the cache of listed tools, their calls, and their output.

mod call;
mod canonical_json;
mod definitions;
mod digest;
mod output;
mod output_validation;
mod params;
mod tool_cache;

pub(crate) use call::encode_param_headers;
pub use digest::{InvalidToolDigest, ToolDigest, ToolFingerprint};
pub use output::{StructuredError, ToolOutput};
pub(crate) use params::ToolCall;
pub(crate) use tool_cache::ToolCache;
